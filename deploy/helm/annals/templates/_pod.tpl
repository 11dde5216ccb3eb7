{{- define "annals.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .uid | default 10001 }}
runAsGroup: {{ .uid | default 10001 }}
fsGroup: {{ .uid | default 10001 }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "annals.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Probes ask for health on its own port, in clear: those of Kubernetes know no TLS. The start
may take as long as the dependencies do: a process that waits for them is alive. */}}
{{- define "annals.probes" -}}
startupProbe:
  grpc: {port: 50061, service: liveness}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  grpc: {port: 50061, service: liveness}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  grpc: {port: 50061, service: ""}
  periodSeconds: 3
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* Where pods run: (dict "root" $ "component" … "values" .Values.storage). */}}
{{- define "annals.scheduling" -}}
{{- if .values.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $.values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "annals.selectorLabels" $ | nindent 8 }}
    # Pods of the former version would otherwise count as if they stayed.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* One secret as a variable: (dict "name" … "secret" … "key" …). */}}
{{- define "annals.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end -}}

{{/* What storage, indexer and maintenance have in common. */}}
{{- define "annals.storageSecretVariables" -}}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_DATABASE_URL" "secret" (include "annals.databaseSecret" .) "key" .Values.database.urlKey) }}
{{- with .Values.vectors.apiKeySecret }}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_QDRANT_API_KEY" "secret" . "key" $.Values.vectors.apiKeyKey) }}
{{- end }}
{{- with .Values.keys.existingSecret }}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_ADMIN_KEY_SHA256" "secret" . "key" $.Values.keys.adminKeySha256Key) }}
{{- if $.Values.keys.secretsKeyKey }}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_SECRETS_KEY" "secret" . "key" $.Values.keys.secretsKeyKey) }}
{{- end }}
{{- if $.Values.keys.workerKeySha256Key }}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_WORKER_KEY_SHA256" "secret" . "key" $.Values.keys.workerKeySha256Key) }}
{{- end }}
{{- end }}
{{- with .Values.coldStorage.optionsSecret }}
{{ include "annals.secretVariable" (dict "name" "ANNALS_STORAGE_COLD_STORAGE_OPTIONS" "secret" . "key" $.Values.coldStorage.optionsKey) }}
{{- end }}
{{- end -}}

{{- define "annals.storageMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.database.caSecret }}
- {name: database-ca, mountPath: /etc/annals/database, readOnly: true}
{{- end }}
{{- if .Values.embedding.modelVolume }}
- {name: model, mountPath: /var/lib/annals/model, readOnly: true}
{{- end }}
{{- end -}}

{{- define "annals.storageVolumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .sizeLimit }}
{{- with .root.Values.database.caSecret }}
- name: database-ca
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .root.Values.embedding.modelVolume }}
- name: model
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The process of a component as a Deployment:
(dict "root" $ "component" … "values" … "image" … "command" … "grpc" port or 0
 "drain" seconds until it must be gone "env" … "mounts" … "volumes" … "checksum" …). */}}
{{- define "annals.deployment" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "annals.meta" . | nindent 2 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    {{- if .recreate }}
    # The embedded engine belongs to one process at a time.
    type: Recreate
    {{- else }}
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- end }}
  selector:
    matchLabels:
      {{- include "annals.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "annals.labels" . | nindent 8 }}
      annotations:
        checksum/config: {{ include (print $root.Template.BasePath "/configmaps.yaml") $root | sha256sum }}
        checksum/secrets: {{ .checksum }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "annals.fullname" $root }}-{{ .component }}
      automountServiceAccountToken: false
      # Variables such as ANNALS_STORAGE_PORT, which Kubernetes would set, look like settings.
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .drain }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "annals.podSecurity" dict | nindent 8 }}
      {{- include "annals.scheduling" . | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "annals.image" (dict "root" $root "image" .image) }}
          imagePullPolicy: {{ .image.pullPolicy }}
          args: [{{ .command }}]
          ports:
            {{- if .grpc }}
            - {name: grpc, containerPort: {{ .grpc }}}
            {{- end }}
            - {name: health, containerPort: 50061}
            - {name: metrics, containerPort: 9464}
          envFrom:
            - configMapRef:
                name: {{ include "annals.fullname" $root }}-{{ .component }}
          {{- with .env }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          {{- include "annals.probes" . | nindent 10 }}
          {{- if .grpc }}
          lifecycle:
            preStop:
              # Endpoints forget the pod before it refuses calls.
              sleep: {seconds: {{ .values.preStopSeconds }}}
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- include "annals.containerSecurity" . | nindent 12 }}
          volumeMounts:
            {{- .mounts | nindent 12 }}
      volumes:
        {{- .volumes | nindent 8 }}
{{- end -}}
