"""What the wheels' metadata cannot say as text: project URLs, and where tfdet gets tfdeterminism from."""

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CheckoutMetadata(MetadataHookInterface):
    """The metadata hook of both wheels, tfdet and tfdeterminism; only that of tfdet is configured with dependencies."""

    def update(self, metadata):
        repository = os.environ.get("GITHUB_REPOSITORY")
        if repository:  # set in a workflow of GitHub: the repository that publishes the wheels
            home = "{}/{}".format(os.environ["GITHUB_SERVER_URL"], repository)
            metadata["urls"] = {"Source": home, "Issues": home + "/issues",
                                "Changelog": home + "/blob/HEAD/CHANGELOG.md"}
        if "dependencies" in self.config:
            metadata["dependencies"] = self.config["dependencies"] + [self._tfdeterminism(metadata["version"])]

    def _tfdeterminism(self, version):
        """The requirement: the version in a release (TFDET_RELEASE is set), else the folder, which no index has."""
        if os.environ.get("TFDET_RELEASE"):
            return "tfdeterminism=={}".format(version)
        from pathlib import Path
        return "tfdeterminism @ {}".format(Path(self.root, "runtime").as_uri())
