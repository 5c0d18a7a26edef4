"""What a promoted trial becomes outside of this repository: an attestation, an MLflow model, an OCI artifact."""
