{{- /* Names, labels and parts that several manifests have. */ -}}

{{- define "mycc-tune.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mycc-tune.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "mycc-tune.labels" -}}
{{ include "mycc-tune.selector" . }}
app.kubernetes.io/part-of: mycc
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "mycc-tune.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Refuses what `mycc-tune serve` would refuse when it starts. */ -}}
{{- define "mycc-tune.check" -}}
{{- $server := .Values.server.credentials.secretName -}}
{{- $workers := .Values.workers.credentials.secretName -}}
{{- if .Values.server.insecureAllowRemote -}}
{{- if or $server $workers -}}
{{- fail "server.insecureAllowRemote is for a farm without credentials; expected it alone, or server.credentials.secretName and workers.credentials.secretName" -}}
{{- end -}}
{{- else if not (and $server $workers) -}}
{{- fail "the server is reached over the network; expected server.credentials.secretName and workers.credentials.secretName, or server.insecureAllowRemote=true" -}}
{{- end -}}
{{- end -}}

{{- define "mycc-tune.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "mycc-tune.credential-mount" -}}
- {name: credentials, mountPath: /etc/mycc-tune/credentials, readOnly: true}
{{- end -}}

{{- /* The pod of a worker: root, component, values of the kind of worker, args before those of the connection. */ -}}
{{- define "mycc-tune.worker-pod" -}}
{{- $server := .root.Values.server -}}
metadata:
  labels:
    {{- include "mycc-tune.labels" . | nindent 4 }}
    mycc-tune/worker: "true"
  {{- with .values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "mycc-tune.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if .root.Values.workers.userNamespaces }}
  hostUsers: false
  {{- end }}
  {{- with .values.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      {{- toYaml .root.Values.workers.seccompProfile | nindent 6 }}
  containers:
    - name: worker
      image: {{ include "mycc-tune.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args:
        - worker
        - --server={{ include "mycc-tune.name" .root }}:{{ $server.port }}
        {{- if .root.Values.workers.credentials.secretName }}
        - --credentials=/etc/mycc-tune/credentials
        {{- end }}
        # The server knows by the name which worker was started again.
        - --name=$(WORKER_NAME)
        {{- range .args }}
        - {{ . }}
        {{- end }}
        {{- range .values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: WORKER_NAME
          valueFrom:
            fieldRef:
              fieldPath: {{ .nameFrom }}
        - {name: TMPDIR, value: /scratch}
        - {name: XDG_CACHE_HOME, value: /scratch/cache}
        - {name: XDG_RUNTIME_DIR, value: /scratch}
      securityContext:
        {{- include "mycc-tune.container-security" . | nindent 8 }}
        {{- if .root.Values.workers.userNamespaces }}
        procMount: Unmasked
        {{- end }}
      resources:
        {{- if .gpus }}
        requests:
          {{- toYaml .values.resources.requests | nindent 10 }}
          nvidia.com/gpu: {{ .gpus }}
        limits:
          {{- toYaml .values.resources.limits | nindent 10 }}
          nvidia.com/gpu: {{ .gpus }}
        {{- else }}
        {{- toYaml .values.resources | nindent 8 }}
        {{- end }}
      volumeMounts:
        - {name: scratch, mountPath: /scratch}
        {{- if .root.Values.workers.credentials.secretName }}
        {{- include "mycc-tune.credential-mount" . | nindent 8 }}
        {{- end }}
  volumes:
    # Candidates are libraries that are loaded from here, so it must not be mounted noexec.
    - name: scratch
      emptyDir:
        sizeLimit: {{ .root.Values.workers.scratchSize }}
    {{- with .root.Values.workers.credentials.secretName }}
    - name: credentials
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* How the kubelet asks the server: over HTTP where it has it, else gRPC, whose probes know no TLS, else the port alone. */ -}}
{{- define "mycc-tune.probe" -}}
{{- $server := .root.Values.server -}}
{{- if $server.http.enabled -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" (ne $server.credentials.secretName "") }}
{{- else if $server.insecureAllowRemote -}}
grpc:
  port: {{ $server.port }}
{{- else -}}
tcpSocket:
  port: grpc
{{- end -}}
{{- end -}}
