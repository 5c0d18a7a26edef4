"""Rules for any manifests, one module per subject. They rely on the schema, which is checked first."""
