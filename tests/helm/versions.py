"""The versions of Kubernetes that the chart is checked against: oldest, middle, newest."""

KUBERNETES_VERSIONS = ("1.31.0", "1.34.0", "1.37.0")
