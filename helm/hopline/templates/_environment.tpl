{{/* What every process is told. A setting that stands nowhere here goes into `settings` or a component's `env`. */}}

{{- define "hopline.vaultPath" -}}/vault{{- end }}
{{- define "hopline.dataPath" -}}/var/lib/hopline{{- end }}

{{/* HOPLINE_VAULTS: the roots as JSON, with paths of the mounted volume. */}}
{{- define "hopline.vaults" -}}
{{- $roots := list }}
{{- range .Values.vault.roots }}
{{- $root := dict "name" .name "path" (printf "%s/%s" (include "hopline.vaultPath" $) .path) }}
{{- $roots = append $roots (merge $root (omit . "path")) }}
{{- end }}
{{- $roots | toJson }}
{{- end }}

{{/* Name: text, as YAML. */}}
{{- define "hopline.commonSettings" -}}
{{- $kafka := .Values.kafka }}
{{- $search := .Values.opensearch }}
HOPLINE_PREFIX: {{ .Values.prefix | quote }}
HOPLINE_LOG_LEVEL: {{ .Values.logLevel | quote }}
HOPLINE_LOCAL__DATA_DIR: {{ include "hopline.dataPath" . }}
HOPLINE_VAULTS: {{ include "hopline.vaults" . | quote }}
HOPLINE_MEMORIES__ENABLED: {{ .Values.memories.enabled | quote }}
{{- if .Values.memories.enabled }}
HOPLINE_MEMORIES__FOLDER: {{ printf "%s/%s" (include "hopline.vaultPath" .) .Values.memories.path | quote }}
{{- end }}
HOPLINE_KAFKA__BOOTSTRAP_SERVERS: {{ $kafka.bootstrapServers | quote }}
HOPLINE_KAFKA__SECURITY_PROTOCOL: {{ $kafka.securityProtocol | quote }}
HOPLINE_KAFKA__PARTITIONS: {{ $kafka.partitions | int | quote }}
HOPLINE_KAFKA__REPLICATION_FACTOR: {{ $kafka.replicationFactor | int | quote }}
HOPLINE_KAFKA__SESSION_TIMEOUT_SECONDS: {{ $kafka.sessionTimeoutSeconds | toString | quote }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
HOPLINE_KAFKA__SASL_MECHANISM: {{ $kafka.sasl.mechanism | quote }}
{{- end }}
{{- if $kafka.tls.caSecret }}
HOPLINE_KAFKA__CA_FILE: /etc/hopline/kafka/ca.crt
{{- end }}
{{- if $kafka.tls.clientSecret }}
HOPLINE_KAFKA__CERT_FILE: /etc/hopline/kafka/tls.crt
HOPLINE_KAFKA__KEY_FILE: /etc/hopline/kafka/tls.key
{{- end }}
HOPLINE_OPENSEARCH__URL: {{ $search.url | quote }}
HOPLINE_OPENSEARCH__SHARDS: {{ $search.shards | int | quote }}
HOPLINE_OPENSEARCH__REPLICAS: {{ $search.replicas | int | quote }}
{{- if $search.tls.caSecret }}
HOPLINE_OPENSEARCH__CA_FILE: /etc/hopline/opensearch/ca.crt
{{- end }}
{{- if $search.tls.clientSecret }}
HOPLINE_OPENSEARCH__CERT_FILE: /etc/hopline/opensearch/tls.crt
HOPLINE_OPENSEARCH__KEY_FILE: /etc/hopline/opensearch/tls.key
{{- end }}
{{- /* The same in all processes: the agents compare versions that name the models. */}}
HOPLINE_EMBEDDER__BACKEND: {{ .Values.embedder.backend | quote }}
HOPLINE_EMBEDDER__THREADS: {{ .Values.embedder.threads | int | quote }}
{{- with .Values.embedder.model }}
HOPLINE_EMBEDDER__MODEL: {{ . | quote }}
{{- end }}
{{- if eq .Values.embedder.backend "torch" }}
HOPLINE_EMBEDDER__PRECISION: {{ .Values.embedder.precision | quote }}
{{- end }}
HOPLINE_EXTRACTOR__BACKEND: {{ .Values.extractor.backend | quote }}
HOPLINE_EXTRACTOR__THREADS: {{ .Values.extractor.threads | int | quote }}
{{- with .Values.extractor.model }}
HOPLINE_EXTRACTOR__MODEL: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "hopline.querySettings" -}}
{{- $query := .Values.query }}
{{- $service := printf "%s-query" (include "hopline.fullname" .) }}
{{- $hosts := list }}
{{- $names := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) }}
{{- range concat (list "localhost" "127.0.0.1") $names (ternary .Values.ingress.hosts list .Values.ingress.enabled) }}
{{- $hosts = concat $hosts (list . (printf "%s:*" .)) }}
{{- end }}
{{- $origins := list }}
{{- if .Values.ingress.enabled }}
{{- range .Values.ingress.hosts }}
{{- $origins = append $origins (printf "https://%s" .) }}
{{- end }}
{{- end }}
HOPLINE_API__HOST: "0.0.0.0"
HOPLINE_API__PORT: "8470"
HOPLINE_API__KEYS_FILE: /etc/hopline/keys/keys.json
HOPLINE_API__SECRET_FILE: /etc/hopline/keys/installation-secret
HOPLINE_MCP__ENABLED: {{ $query.mcp.enabled | quote }}
HOPLINE_MCP__ALLOWED_HOSTS: {{ concat $hosts $query.mcp.allowedHosts | toJson | quote }}
HOPLINE_MCP__ALLOWED_ORIGINS: {{ concat $origins $query.mcp.allowedOrigins | default list | toJson | quote }}
{{- with $query.oidc.issuer }}
HOPLINE_OIDC__ISSUER: {{ . | quote }}
HOPLINE_OIDC__AUDIENCE: {{ $query.oidc.audience | quote }}
HOPLINE_OIDC__JWKS_URL: {{ $query.oidc.jwksUrl | quote }}
{{- end }}
{{- end }}

{{/*
The variables of a container. Takes {root, own (YAML of the component's settings), env (the component's values)}.
Later ones win: common, component, `settings`, the component's `env`.
*/}}
{{- define "hopline.env" -}}
{{- $all := include "hopline.commonSettings" .root | fromYaml }}
{{- $all = mergeOverwrite $all (default dict (.own | fromYaml)) .root.Values.settings .env }}
{{- /* The image's home may be read-only. */}}
- name: HOME
  value: /tmp
- name: HF_HUB_OFFLINE
  value: "1"
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- $kafka := .root.Values.kafka }}
{{- if hasPrefix "SASL" $kafka.securityProtocol }}
- name: HOPLINE_KAFKA__SASL_USERNAME
  valueFrom:
    secretKeyRef: {name: {{ $kafka.sasl.existingSecret }}, key: {{ $kafka.sasl.usernameKey }}}
- name: HOPLINE_KAFKA__SASL_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ $kafka.sasl.existingSecret }}, key: {{ $kafka.sasl.passwordKey }}}
{{- end }}
{{- $search := .root.Values.opensearch }}
{{- if $search.existingSecret }}
- name: HOPLINE_OPENSEARCH__USERNAME
  valueFrom:
    secretKeyRef: {name: {{ $search.existingSecret }}, key: {{ $search.usernameKey }}}
- name: HOPLINE_OPENSEARCH__PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ $search.existingSecret }}, key: {{ $search.passwordKey }}}
{{- end }}
{{- end }}
