"""python -m tfdet."""

from tfdet.cli.main import main

main()
