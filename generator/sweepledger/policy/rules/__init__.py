"""Rules for all manifests, one module per subject. They rely on the schema, which is checked first."""
