"""The Grafana dashboards of the chart, as code: small to read and to review, where their JSON isn't.

python -m tools.dashboards           write helm/hopline/files/dashboards/*.json
python -m tools.dashboards --check   exit 1 where one differs from the code (part of the tests)
"""
