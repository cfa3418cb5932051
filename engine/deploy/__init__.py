"""From what was learned to what runs: which evidence decides a program's grouping and each kernel's schedule."""

from engine.deploy.carrying import Carried, Received, export_schedules, receive_schedules
from engine.deploy.database_rows import database_rows
from engine.deploy.deployment import Deployment, DeploymentError, NoEvidenceError, deployment, deploys_now
from engine.deploy.evidence import Evidence, Source, fastest_deployed
from engine.deploy.instructions import ptx_instructions, sass_instructions
from engine.deploy.knob_report import KnobReport, knob_reports
from engine.deploy.listing import Listed, compiled_kernels
from engine.deploy.pinning import (
    SilentFallbackError,
    check_source_built,
    completed_schedule,
    difference_text,
    pin_context,
    schedules_to_try,
    suggestions_for,
    suggestions_now,
    unpinnable_because,
    user_name,
)
from engine.deploy.prior_report import PriorReport, prior_report, report_steps
from engine.deploy.python_module import ModuleOrigin, python_module
from engine.deploy.reproducing import measuring_command
from engine.deploy.schedule_file import BadScheduleFile, ScheduleFile, is_schedule_file, read_schedule_file
from engine.deploy.standings import pin_standings

__all__ = [
    "BadScheduleFile",
    "Carried",
    "Deployment",
    "DeploymentError",
    "Evidence",
    "KnobReport",
    "Listed",
    "ModuleOrigin",
    "NoEvidenceError",
    "PriorReport",
    "Received",
    "ScheduleFile",
    "SilentFallbackError",
    "Source",
    "check_source_built",
    "compiled_kernels",
    "completed_schedule",
    "database_rows",
    "deployment",
    "deploys_now",
    "difference_text",
    "export_schedules",
    "fastest_deployed",
    "is_schedule_file",
    "knob_reports",
    "measuring_command",
    "pin_context",
    "pin_standings",
    "prior_report",
    "ptx_instructions",
    "python_module",
    "read_schedule_file",
    "receive_schedules",
    "report_steps",
    "sass_instructions",
    "schedules_to_try",
    "suggestions_for",
    "suggestions_now",
    "unpinnable_because",
    "user_name",
]
