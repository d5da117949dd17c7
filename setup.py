"""The wheel's files that aren't modules: DAGs, plugin, policies and the example, below `durability/share`.

They lie at the top of a checkout, where people and Airflow look for them; `durability.resources` finds them in both places.
Everything else about the build is in pyproject.toml.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHARED = ("dags", "plugins", "policies", "docs/examples")
KINDS = {".py", ".yaml", ".json", ".airflowignore"}


class BuildWithShared(build_py):
    """Copies SHARED as well, unless the installation is editable: then the checkout itself has them."""

    def _shared(self) -> dict[str, str]:
        """By file below the build folder the file of the checkout that it is a copy of."""
        root = Path(__file__).resolve().parent
        files = (f for folder in SHARED for f in sorted((root / folder).rglob("*")) if (f.suffix or f.name) in KINDS)
        # The package in plugins/ is installed as a package; Airflow still needs a folder for plugins.
        files = (f for f in files if f.suffix != ".py" or f.relative_to(root).parts[0] != "plugins")
        share = Path(self.build_lib, "durability", "share")
        return {str(share / f.relative_to(root)): str(f.relative_to(root)) for f in files}

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for target, source in self._shared().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target, preserve_mode=False)
                if target.endswith(".yaml"):
                    # Its first line names a schema by a relative path; `share` is within the package of the schemas.
                    text = Path(source).read_text(encoding="utf-8")
                    Path(target).write_text(
                        text.replace("../durability/schemas/", "../../schemas/", 1), encoding="utf-8"
                    )

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        shared = [] if self.editable_mode else list(self._shared())
        return [*super().get_outputs(include_bytecode), *shared]

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *self._shared().values()]


setup(cmdclass={"build_py": BuildWithShared})
