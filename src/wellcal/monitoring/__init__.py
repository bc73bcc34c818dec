"""Since when are predictions off? Anytime-valid monitoring, one case or batch at a time."""

from wellcal.monitoring.change import MonitorChange
from wellcal.monitoring.monitor import Monitor
from wellcal.monitoring.status import MonitorStatus

__all__ = ["Monitor", "MonitorChange", "MonitorStatus"]
