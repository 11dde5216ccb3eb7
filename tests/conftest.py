pytest_plugins = [
    "tests.support.postgres",
    "tests.support.storage",
    "tests.support.context",
    "tests.support.cli",
    "tests.support.s3",
    "tests.support.scratch",
]
