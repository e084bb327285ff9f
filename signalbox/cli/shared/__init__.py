"""Parts that all commands share: the deployment, output, files and signals."""
