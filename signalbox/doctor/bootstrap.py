"""The CDK bootstrap of the account and region, and the key of its assets bucket."""

from signalbox.doctor.findings import Finding, ok, stop, warn

BOOTSTRAP, ASSETS = "CDK bootstrap", "CDK assets bucket"
# The synthesized stacks require this version; tests/infrastructure/test_needs.py compares it with the manifest.
REQUIRED_VERSION = 6
COMMAND = "signalbox deploy --bootstrap"


def bootstrap_finding(version: int | None, *, is_requested: bool) -> Finding:
    """Return the finding on the version of the bootstrap; with `is_requested`, the deployment bootstraps first."""
    if version is not None and version >= REQUIRED_VERSION:
        return ok(BOOTSTRAP, f"version {version}, at least {REQUIRED_VERSION} is needed")
    found = "none in this account and region" if version is None else f"version {version}, too old"
    if is_requested:
        return ok(BOOTSTRAP, f"{found}; this deployment makes one")
    return stop(BOOTSTRAP, f"{found}; version {REQUIRED_VERSION} is needed", remedy=f"once: {COMMAND}")


def assets_finding(key: str | None, *, exists: bool, known_key: str | None) -> Finding | None:
    """Return the finding on the key of the assets bucket, from which Glue jobs read their scripts.

    `known_key` is the key of the settings, which the jobs may use.
    """
    if not exists:
        return None
    if key is None or key.endswith("alias/aws/s3"):
        return ok(ASSETS, "encrypted with a key of AWS")
    if known_key is not None and key in (known_key, known_key.rpartition("/")[2]):
        return ok(ASSETS, f"encrypted with {key}, which the Glue jobs may use")
    remedy = (
        f"let the Glue jobs read their scripts: asset_key_arn=<the ARN of {key}>. Not needed if its policy admits all "
        "roles of the account, as that of `cdk bootstrap --bootstrap-customer-key` does"
    )
    return warn(ASSETS, f"encrypted with the customer key {key}", remedy=remedy)
