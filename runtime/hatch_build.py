"""Project URLs for the wheels: those of the repository that publishes them, for no other is known."""

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    def update(self, metadata):
        repository = os.environ.get("GITHUB_REPOSITORY")
        if repository:
            home = "{}/{}".format(os.environ["GITHUB_SERVER_URL"], repository)
            metadata["urls"] = {"Source": home, "Issues": home + "/issues",
                                "Changelog": home + "/blob/HEAD/CHANGELOG.md"}
