"""The tools that the tests of the chart, the rules and the dashboards need: helm, helm-unittest, kubeconform, promtool
and prometheus, and the schemas of Kubernetes.

python3 -m tools.chart_tools     fetch and build what is missing (minutes, the first time)

Only the standard library is used: CI starts it before the project's own environment exists. `tool(NAME)` gives the
path of one; where another process is at it, it waits.
"""

from tools.chart_tools.folder import ChartToolError, tool

__all__ = ["ChartToolError", "tool"]
