"""One SQLite file that keeps what was measured: schema, migrations, writes, questions, and following a live run."""

from engine.store.candidates import Candidate, CandidateQuery, Compared, Condition
from engine.store.copies import copy_database
from engine.store.errors import StoreError, StoreFull
from engine.store.failures import FailureCluster
from engine.store.importing import Imported, NotResults, read_results
from engine.store.paths import default_database_path, user_data_folder
from engine.store.pins import PinChange, PinStanding, Standing, StoredPin
from engine.store.queries import KernelVariants, VariantRow
from engine.store.recording import Recording
from engine.store.records import NodeRecord, RecordedAssembly, RecordedGrouping, RunInfo, StoredRun, node_key
from engine.store.run_results import KernelResult
from engine.store.schema import SCHEMA
from engine.store.store import Store

__all__ = [
    "SCHEMA",
    "Candidate",
    "CandidateQuery",
    "Compared",
    "Condition",
    "FailureCluster",
    "Imported",
    "KernelResult",
    "KernelVariants",
    "NodeRecord",
    "NotResults",
    "PinChange",
    "PinStanding",
    "RecordedAssembly",
    "RecordedGrouping",
    "Recording",
    "RunInfo",
    "Standing",
    "Store",
    "StoreError",
    "StoreFull",
    "StoredPin",
    "StoredRun",
    "VariantRow",
    "copy_database",
    "default_database_path",
    "node_key",
    "read_results",
    "user_data_folder",
]
