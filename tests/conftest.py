pytest_plugins = [
    "tests.support.postgres",
    "tests.support.storage",
    "tests.support.context",
    "tests.support.scratch",
]
