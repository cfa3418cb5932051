"""One SQLite file that keeps what was measured: schema, migrations, writes, questions, and following a live run."""

from engine.store.copies import copy_database
from engine.store.errors import StoreError
from engine.store.failures import FailureCluster
from engine.store.paths import default_database_path, user_data_folder
from engine.store.queries import KernelVariants, VariantRow
from engine.store.recording import Recording
from engine.store.records import NodeRecord, RecordedAssembly, RecordedGrouping, RunInfo, StoredRun, node_key
from engine.store.schema import SCHEMA
from engine.store.store import Store

__all__ = [
    "SCHEMA",
    "FailureCluster",
    "KernelVariants",
    "NodeRecord",
    "RecordedAssembly",
    "RecordedGrouping",
    "Recording",
    "RunInfo",
    "Store",
    "StoreError",
    "StoredRun",
    "VariantRow",
    "copy_database",
    "default_database_path",
    "node_key",
    "user_data_folder",
]
