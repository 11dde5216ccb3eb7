{{/* Values that contradict each other. What one value may be is said by values.schema.json. */}}
{{- define "annals.checks" -}}
{{- $v := .Values -}}
{{- if eq $v.vectors.engine "edge" -}}
{{- if $v.indexer.enabled -}}
{{- fail "vectors.engine=edge keeps vectors in the one storage process: set indexer.enabled=false, or use vectors.engine=server" -}}
{{- end -}}
{{- if or $v.storage.autoscaling.enabled (gt (int $v.storage.replicas) 1) -}}
{{- fail "vectors.engine=edge allows one storage process: set storage.replicas=1 and storage.autoscaling.enabled=false, or use vectors.engine=server" -}}
{{- end -}}
{{- if or $v.vectors.qdrantUrl $v.evaluation.qdrant.enabled -}}
{{- fail "vectors.engine=edge uses no Qdrant server: clear vectors.qdrantUrl and evaluation.qdrant.enabled, or use vectors.engine=server" -}}
{{- end -}}
{{- else if and $v.vectors.qdrantUrl $v.evaluation.qdrant.enabled -}}
{{- fail "vectors.qdrantUrl and evaluation.qdrant.enabled exclude each other" -}}
{{- else if not (or $v.vectors.qdrantUrl $v.evaluation.qdrant.enabled) -}}
{{- fail "vectors.engine=server needs vectors.qdrantUrl (or, to evaluate, evaluation.qdrant.enabled=true)" -}}
{{- end -}}
{{- if and $v.database.existingSecret $v.evaluation.postgresql.enabled -}}
{{- fail "database.existingSecret and evaluation.postgresql.enabled exclude each other" -}}
{{- else if not (or $v.database.existingSecret $v.evaluation.postgresql.enabled) -}}
{{- fail "database.existingSecret must name the secret with the URL of PostgreSQL (or, to evaluate, set evaluation.postgresql.enabled=true)" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "secret") (not (and $v.tls.storageSecret $v.tls.contextSecret)) -}}
{{- fail "tls.mode=secret needs tls.storageSecret and tls.contextSecret, each with tls.crt, tls.key and ca.crt" -}}
{{- end -}}
{{- if and (ne $v.tls.mode "secret") (or $v.tls.storageSecret $v.tls.contextSecret) -}}
{{- fail "tls.storageSecret and tls.contextSecret are for tls.mode=secret" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "certManager") (not $v.tls.certManager.issuerName) -}}
{{- fail "tls.mode=certManager needs tls.certManager.issuerName" -}}
{{- end -}}
{{- if and (eq $v.tls.mode "none") $v.tls.clientAuthentication -}}
{{- fail "tls.clientAuthentication needs tls.mode secret or certManager" -}}
{{- end -}}
{{- if and (eq $v.indexer.autoscaling.mode "keda") (not $v.indexer.autoscaling.prometheusUrl) -}}
{{- fail "indexer.autoscaling.mode=keda needs indexer.autoscaling.prometheusUrl" -}}
{{- end -}}
{{- if and (ne $v.indexer.autoscaling.mode "none") (not $v.indexer.enabled) -}}
{{- fail "indexer.autoscaling needs indexer.enabled=true" -}}
{{- end -}}
{{- if and $v.workers.enabled (not (and $v.keys.existingSecret $v.keys.workerKeySha256Key $v.keys.workerKeyKey)) -}}
{{- fail "workers.enabled needs keys.existingSecret, keys.workerKeySha256Key and keys.workerKeyKey: `annals-storage jobs key` makes a key and its SHA-256" -}}
{{- end -}}
{{- range $name := list "storage" "context" "indexer" -}}
{{- $scaling := (index $v $name).autoscaling -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "%s.autoscaling.minReplicas is more than maxReplicas" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.embedding.model (ne $v.embedding.model "sentence-transformers/all-MiniLM-L6-v2") (not $v.embedding.modelVolume) -}}
{{- fail "embedding.model needs embedding.modelVolume: pods fetch no models" -}}
{{- end -}}
{{- end -}}
