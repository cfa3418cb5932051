"""One SQLite file that keeps what was measured: schema, migrations, writes, questions, and following a live run."""

from engine.store.acf import AcceptanceRow
from engine.store.acts import StoredAct
from engine.store.candidates import Candidate, CandidateQuery, Compared, Condition
from engine.store.carried import CarriedGraph
from engine.store.checking import check_database
from engine.store.connection import upgrade_file
from engine.store.copies import copy_database
from engine.store.cut_short import check_length
from engine.store.database_file import is_beside_a_database, is_database, remove_database, unwritable_because
from engine.store.errors import BadRow, StoreError, StoreFull, StoreLocked
from engine.store.failures import FailureCluster
from engine.store.forbidden import ForbiddenCorner
from engine.store.front import pareto_front
from engine.store.importing import ForeignResults, Imported, NotResults, read_document, read_results
from engine.store.left_out import LeftOut, unlike
from engine.store.merging import Merged, merge_databases
from engine.store.paths import default_database_path, user_data_folder
from engine.store.pins import PinChange, PinStanding, Standing, StoredPin
from engine.store.queries import KernelVariants, VariantRow
from engine.store.reading import opened_to_read
from engine.store.recording import Recording
from engine.store.records import IMPORTED, NodeRecord, RecordedGrouping, RunInfo, StoredRun, node_key
from engine.store.run_results import KernelResult
from engine.store.schema import SCHEMA
from engine.store.store import Store
from engine.store.suggestions import Suggestion

__all__ = [
    "IMPORTED",
    "SCHEMA",
    "AcceptanceRow",
    "BadRow",
    "Candidate",
    "CandidateQuery",
    "CarriedGraph",
    "Compared",
    "Condition",
    "FailureCluster",
    "ForbiddenCorner",
    "ForeignResults",
    "Imported",
    "KernelResult",
    "KernelVariants",
    "LeftOut",
    "Merged",
    "NodeRecord",
    "NotResults",
    "PinChange",
    "PinStanding",
    "RecordedGrouping",
    "Recording",
    "RunInfo",
    "Standing",
    "Store",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoredAct",
    "StoredPin",
    "StoredRun",
    "Suggestion",
    "VariantRow",
    "check_database",
    "check_length",
    "copy_database",
    "default_database_path",
    "is_beside_a_database",
    "is_database",
    "merge_databases",
    "node_key",
    "opened_to_read",
    "pareto_front",
    "read_document",
    "read_results",
    "remove_database",
    "unlike",
    "unwritable_because",
    "upgrade_file",
    "user_data_folder",
]
