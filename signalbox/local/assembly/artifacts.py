"""The stacks and the assets of a synthesized app, as its manifests name them."""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNKNOWN_REGION = "unknown-region"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a file in an archive
STACK, ASSETS = "aws:cloudformation:stack", "cdk:asset-manifest"


@dataclass(frozen=True, slots=True)
class DefaultPlace:
    """The account and the region of stacks that name none."""

    account: str
    region: str

    def fill(self, text: str, region: str | None = None) -> str:
        """Replace the placeholders of the CDK in a text."""
        values = {"AWS::AccountId": self.account, "AWS::Region": region or self.region, "AWS::Partition": "aws"}
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", value)
        return text


@dataclass(frozen=True, slots=True)
class StackArtifact:
    """A stack of an assembly."""

    name: str
    region: str
    template_url: str
    is_protected: bool
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asset:
    """A file or a folder of an assembly, and the object that its stacks expect."""

    path: Path
    is_zipped: bool
    bucket: str
    key: str
    region: str

    def content(self) -> bytes:
        """Return the contents of the object."""
        return zipped(self.path) if self.is_zipped else self.path.read_bytes()


def artifacts_of(assembly: Path) -> Mapping[str, Any]:
    """Return the artifacts of an assembly's manifest."""
    artifacts: Mapping[str, Any] = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    return artifacts


def stack_artifacts(artifacts: Mapping[str, Any], place: DefaultPlace) -> list[StackArtifact]:
    """Return the stacks of an assembly's manifest, each after those on which it depends."""
    return [
        _stack_artifact(name, artifacts[name], place)
        for name in _in_order(artifacts)
        if artifacts[name]["type"] == STACK
    ]


def _in_order(artifacts: Mapping[str, Any]) -> Iterable[str]:
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        for other in artifacts[name].get("dependencies", ()):
            if other not in ordered:
                add(other)
        ordered[name] = None

    for name in artifacts:
        add(name)
    return ordered


def _stack_artifact(name: str, artifact: Mapping[str, Any], place: DefaultPlace) -> StackArtifact:
    properties, region = artifact["properties"], artifact["environment"].rpartition("/")[2]
    region = place.region if region == UNKNOWN_REGION else region
    bucket_and_key = place.fill(properties["stackTemplateAssetObjectUrl"], region).removeprefix("s3://")
    return StackArtifact(
        name=properties.get("stackName", name),
        region=region,
        template_url=f"https://s3.{region}.amazonaws.com/{bucket_and_key}",
        is_protected=properties.get("terminationProtection", False),
        tags=properties.get("tags", {}),
    )


def assets(assembly: Path, artifacts: Mapping[str, Any], place: DefaultPlace) -> Iterator[Asset]:
    """Yield the assets of all stacks, each object once."""
    found: dict[tuple[str, str], Asset] = {}
    for artifact in artifacts.values():
        if artifact["type"] == ASSETS:
            files = json.loads((assembly / artifact["properties"]["file"]).read_text()).get("files", {})
            for file in files.values():
                found |= {(one.bucket, one.key): one for one in _destinations(assembly, file, place)}
    yield from found.values()


def _destinations(assembly: Path, file: Mapping[str, Any], place: DefaultPlace) -> Iterator[Asset]:
    source = file["source"]
    for destination in file["destinations"].values():
        region = destination.get("region", place.region)
        bucket = place.fill(destination["bucketName"], region)
        is_zipped = source["packaging"] == "zip"
        yield Asset(assembly / source["path"], is_zipped, bucket, place.fill(destination["objectKey"], region), region)


def zipped(folder: Path) -> bytes:
    """Return an archive of a folder, without compression: it does not leave this machine."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), EARLIEST)
                entry.external_attr = path.stat().st_mode << 16
                files.writestr(entry, path.read_bytes())
    return archive.getvalue()
