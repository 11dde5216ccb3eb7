pytest_plugins = ["tests.support.postgres", "tests.support.storage"]
