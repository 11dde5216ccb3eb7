from tests.contract.embedding_models import minilm, minilm_dir  # noqa: F401
