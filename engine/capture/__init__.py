"""From what the user typed to a program: the code runs in a child process, under torch.export, without a GPU."""

from engine.capture.errors import CaptureError
from engine.capture.process import capture
from engine.capture.target import TargetOptions, parse_target, target_text

__all__ = ["CaptureError", "TargetOptions", "capture", "parse_target", "target_text"]
