{{/* What a schema can't say: values that contradict each other. Each template of a workload includes it. */}}

{{- define "hopline.checks" -}}
{{- $kafka := .Values.kafka }}
{{- range $agent := list "ingest" "embed" "extract" "link" }}
{{- $cfg := index $.Values $agent }}
{{- if and $cfg.autoscaling.enabled (gt (int $cfg.autoscaling.maxReplicas) (int $kafka.partitions)) }}
{{- fail (printf "%s.autoscaling.maxReplicas (%d) is more than kafka.partitions (%d): pods beyond the partitions get no work" $agent (int $cfg.autoscaling.maxReplicas) (int $kafka.partitions)) }}
{{- end }}
{{- if and $cfg.autoscaling.enabled (gt (int $cfg.autoscaling.minReplicas) (int $cfg.autoscaling.maxReplicas)) }}
{{- fail (printf "%s.autoscaling.minReplicas is more than maxReplicas" $agent) }}
{{- end }}
{{- if and (not $cfg.autoscaling.enabled) (gt (int $cfg.replicas) (int $kafka.partitions)) }}
{{- fail (printf "%s.replicas (%d) is more than kafka.partitions (%d): pods beyond the partitions get no work" $agent (int $cfg.replicas) (int $kafka.partitions)) }}
{{- end }}
{{- end }}
{{- if gt (int .Values.embed.reindex.replicas) (int $kafka.partitions) }}
{{- fail (printf "embed.reindex.replicas (%d) is more than kafka.partitions (%d): pods beyond the partitions get no work" (int .Values.embed.reindex.replicas) (int $kafka.partitions)) }}
{{- end }}
{{- if gt (int .Values.query.autoscaling.minReplicas) (int .Values.query.autoscaling.maxReplicas) }}
{{- fail "query.autoscaling.minReplicas is more than maxReplicas" }}
{{- end }}
{{- if and (hasPrefix "SASL" $kafka.securityProtocol) (not $kafka.sasl.existingSecret) }}
{{- fail (printf "kafka.securityProtocol %s needs kafka.sasl.existingSecret" $kafka.securityProtocol) }}
{{- end }}
{{- if and (or $kafka.tls.caSecret $kafka.tls.clientSecret) (not (has $kafka.securityProtocol (list "SSL" "SASL_SSL"))) }}
{{- fail (printf "kafka.tls is set, but kafka.securityProtocol %s doesn't use it: SSL or SASL_SSL does" $kafka.securityProtocol) }}
{{- end }}
{{- if and (or .Values.opensearch.tls.caSecret .Values.opensearch.tls.clientSecret) (not (hasPrefix "https://" .Values.opensearch.url)) }}
{{- fail "opensearch.tls is set, but opensearch.url is not https" }}
{{- end }}
{{- if and (eq .Values.watcher.mode "sidecar") (or .Values.ingest.autoscaling.enabled (ne (int .Values.ingest.replicas) 1)) }}
{{- fail "watcher.mode sidecar stands in the ingest pod, of which there must be one: ingest.replicas 1, ingest.autoscaling.enabled false" }}
{{- end }}
{{- if and (eq .Values.embedder.backend "onnx") .Values.embed.gpu.enabled }}
{{- fail "embed.gpu.enabled wants embedder.backend torch: onnx runs on the CPU" }}
{{- end }}
{{- if and (eq .Values.extractor.backend "onnx") .Values.extract.gpu.enabled }}
{{- fail "extract.gpu.enabled wants extractor.backend torch: onnx runs on the CPU" }}
{{- end }}
{{- range .Values.vault.roots }}
{{- if and $.Values.memories.enabled (or (eq .path $.Values.memories.path) (hasPrefix (printf "%s/" .path) $.Values.memories.path) (hasPrefix (printf "%s/" $.Values.memories.path) .path)) }}
{{- fail (printf "vault root %s (%s) and the memories (%s) lie in each other" .name .path $.Values.memories.path) }}
{{- end }}
{{- end }}
{{- end }}
