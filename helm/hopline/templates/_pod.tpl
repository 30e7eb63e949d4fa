{{/* Parts of a pod that all components share. */}}

{{- define "hopline.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ .Values.podSecurity.runAsUser | int64 }}
runAsGroup: {{ .Values.podSecurity.runAsGroup | int64 }}
fsGroup: {{ .Values.podSecurity.fsGroup | int64 }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The restricted Pod Security Standard, and a file system that can't be written. No value loosens it. */}}
{{- define "hopline.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What stands before the containers. Takes {root, name, cfg}. */}}
{{- define "hopline.podHead" -}}
{{- $gpu := default dict .cfg.gpu }}
{{- $withGpu := default false $gpu.enabled }}
serviceAccountName: {{ include "hopline.serviceAccountName" .root }}
automountServiceAccountToken: false
# Variables such as HOPLINE_QUERY_SERVICE_HOST would be refused as settings that don't exist.
enableServiceLinks: false
securityContext:
  {{- include "hopline.podSecurityContext" .root | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if and $withGpu $gpu.runtimeClassName }}
runtimeClassName: {{ $gpu.runtimeClassName }}
{{- end }}
{{- with mergeOverwrite dict .root.Values.nodeSelector .cfg.nodeSelector (ternary (default dict $gpu.nodeSelector) dict $withGpu) }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat .root.Values.tolerations .cfg.tolerations (ternary (default list $gpu.tolerations) list $withGpu) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Takes {root, name}. */}}
{{- define "hopline.topologySpread" -}}
{{- if .root.Values.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $.root.Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "hopline.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Takes {root, vault: no, read or write, keys: true for the query service}. */}}
{{- define "hopline.volumeMounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: {{ include "hopline.dataPath" .root }}}
{{- if ne .vault "no" }}
- {name: vault, mountPath: {{ include "hopline.vaultPath" .root }}, readOnly: {{ eq .vault "read" }}}
{{- end }}
{{- if .root.Values.models.existingClaim }}
- {name: models, mountPath: /models, readOnly: true}
{{- end }}
{{- range $engine := list "kafka" "opensearch" }}
{{- $tls := (index $.root.Values $engine).tls }}
{{- if or $tls.caSecret $tls.clientSecret }}
- {name: {{ $engine }}-tls, mountPath: /etc/hopline/{{ $engine }}, readOnly: true}
{{- end }}
{{- end }}
{{- if .keys }}
- {name: keys, mountPath: /etc/hopline/keys, readOnly: true}
{{- end }}
{{- end }}

{{/* As volumeMounts. */}}
{{- define "hopline.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
# The watcher's last scan, for `hopline rescan` in its pod; nothing that must last.
- name: data
  emptyDir: {sizeLimit: 256Mi}
{{- if ne .vault "no" }}
- name: vault
  persistentVolumeClaim:
    claimName: {{ include "hopline.claimName" .root }}
{{- end }}
{{- with .root.Values.models.existingClaim }}
- name: models
  persistentVolumeClaim: {claimName: {{ . }}, readOnly: true}
{{- end }}
{{- range $engine := list "kafka" "opensearch" }}
{{- $tls := (index $.root.Values $engine).tls }}
{{- if or $tls.caSecret $tls.clientSecret }}
- name: {{ $engine }}-tls
  projected:
    defaultMode: 0440
    sources:
      {{- with $tls.caSecret }}
      - secret:
          name: {{ . }}
          items: [{key: {{ $tls.caKey }}, path: ca.crt}]
      {{- end }}
      {{- with $tls.clientSecret }}
      - secret:
          name: {{ . }}
          items: [{key: {{ $tls.certKey }}, path: tls.crt}, {key: {{ $tls.keyKey }}, path: tls.key}]
      {{- end }}
{{- end }}
{{- end }}
{{- if .keys }}
- name: keys
  secret:
    secretName: {{ .root.Values.query.existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .root.Values.query.keysKey }}, path: keys.json}
      - {key: {{ .root.Values.query.installationSecretKey }}, path: installation-secret}
{{- end }}
{{- end }}

{{/* Of agents, watcher and verifier: `startup` waits for the model, `live` for a loop that moves. Takes the port's name. */}}
{{- define "hopline.workerProbes" -}}
startupProbe:
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  # Fails where work waits and nothing moves, not where Kafka or OpenSearch is away: a restart would mend nothing.
  httpGet: {path: /livez, port: {{ . }}}
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}

{{/* The container of the watcher, in a pod of its own or beside ingest. Takes {root, port (name), number}. */}}
{{- define "hopline.watcherContainer" -}}
{{- $own := printf "HOPLINE_WATCHER__HTTP_HOST: \"0.0.0.0\"\nHOPLINE_WATCHER__HTTP_PORT: \"%d\"\nHOPLINE_WATCHER__FORCE_POLLING: \"%t\"\nHOPLINE_WATCHER__RESCAN_SECONDS: \"%s\"" (int .number) .root.Values.vault.forcePolling (toString .root.Values.watcher.rescanSeconds) }}
name: watcher
image: {{ include "hopline.image" (dict "root" .root "cuda" false) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [hopline, watch]
env:
  {{- include "hopline.env" (dict "root" .root "own" $own "env" .root.Values.watcher.env) | nindent 2 }}
ports:
  - {name: {{ .port }}, containerPort: {{ .number }}}
{{ include "hopline.workerProbes" .port }}
resources:
  {{- toYaml .root.Values.watcher.resources | nindent 2 }}
securityContext:
  {{- include "hopline.securityContext" . | nindent 2 }}
volumeMounts:
  {{- include "hopline.volumeMounts" (dict "root" .root "vault" "read" "keys" false) | nindent 2 }}
{{- end }}
