package signature

// docker build repeats the output of a failed step behind it, and `failed to
// solve` behind that: the first telling is the root.
var dockerRules = []rule{
	{
		name: "docker.space", lits: []string{"no space left on device"}, re: `No space left on device|no space left on device`, not: `npm (?:warn|WARN) `, need: "docker|dockerfile|failed to solve|[internal]|container|run ", conf: 0.955,
		yes: []string{"ERROR: failed to solve: failed to copy: write /var/lib/x: no space left on device"},
		no:  []string{"disk usage 40%"},
	},
	{
		name: "docker.socket", lits: []string{"docker daemon socket", "docker.sock", "docker api"}, re: `permission denied while trying to connect to the [Dd]ocker|docker\.sock: connect: permission denied`, as: "permission denied on the docker socket", conf: 0.955,
		yes: []string{"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied"},
		no:  []string{"Cannot connect to the Docker daemon at unix:///var/run/docker.sock."},
	},
	{
		name: "docker.daemon", lits: []string{"docker daemon", "error during connect", "dockerdesktoplinux", "docker.sock"}, re: `(?i)cannot connect to the docker daemon|is the docker daemon running|error during connect|failed to connect to the docker API|docker\.sock: (?:connect|bind)`, conf: 0.95,
		as:  "cannot connect to the docker daemon",
		yes: []string{"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "ERROR: error during connect: Get \"http://x\": EOF", "failed to connect to the docker API at unix:///var/run/docker.sock"},
		no:  []string{"docker daemon started"},
	},
	{
		name: "docker.checksum", lits: []string{"failed to calculate checksum", "failed to compute cache key", "copy failed:", "add failed:", "forbidden path outside"}, re: `failed to calculate checksum|failed to compute cache key|^(?:COPY|ADD) failed: |[Ff]orbidden path outside`, conf: 0.95,
		keep: `(failed to (?:calculate checksum|compute cache key).*)`,
		yes:  []string{`ERROR: failed to calculate checksum of ref A::B::c: "/dist/server.js": not found`, "COPY failed: file not found in build context or excluded by .dockerignore: stat x: file does not exist"},
		no:   []string{"[3/5] COPY dist/server.js /app/"},
	},
	{
		name: "docker.killed", lits: []string{"killed", "exit code: 137", "exit code 137", "cannot allocate memory"}, re: `^\s*(?:\S*sh: (?:line )?\d+: +\d+ )?Killed\b|exit code:? 137\b|[Cc]annot allocate memory`, need: "docker|dockerfile|failed to solve|[internal]|container", conf: 0.94,
		detail: detail{how: within, re: `process "(.+)" did not complete`},
		yes:    []string{"Killed", `ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 137`},
		no:     []string{`ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1`},
	},
	{
		name: "docker.apt", lits: []string{"e: ", "err:", "unable to select packages", "no package ", "error: unable", "nothing provides"}, re: `^E: (?:Failed to fetch|Unable to locate|Unable to fetch|Unable to correct|Package|Version|The repository|Release file|Could not|Sub-process|Some index|Conflicting|You don't|Invalid|Malformed|The method|GPG|Unmet)|^ERROR: unable to select packages|^No package \S+ available|^Error: (?:Unable to find a match|Nothing to do|Failed to download)|^\s*Problem.*: nothing provides`, not: `^E: Some index|^E: Sub-process .* returned an error code`, conf: 0.94,
		detail: detail{how: after, re: `^\s+(\S+ \(no such package\):|required by: .+|.*)`, lines: 1},
		yes:    []string{"E: Failed to fetch http://deb.example/x.deb  404  Not Found", "E: Unable to locate package foo", "ERROR: unable to select packages:"},
		no:     []string{"E: Some index files failed to download.", "Err:5 http://x Release"},
	},
	{
		name: "docker.port", lits: []string{"port is already allocated", "address already in use", "ports are not available"}, re: `port is already allocated|address already in use|[Pp]orts are not available`, need: "docker|daemon|container|network", conf: 0.95,
		yes: []string{"docker: Error response from daemon: driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:8080 failed: port is already allocated."},
		no:  []string{"port 8080"},
	},
	{
		name: "docker.pull", lits: []string{"pull access denied", "manifest unknown", "manifest for", "not found: manifest", "toomanyrequests", "no matching manifest", "failed to resolve source metadata", "repository does not exist", "unauthorized: ", "no basic auth credentials", "denied: ", "not found"}, re: `pull access denied|manifest unknown|manifest for \S+ not found|toomanyrequests|no matching manifest|failed to resolve source metadata|repository does not exist|unauthorized: |no basic auth credentials|^denied: |(?:docker\.io|ghcr\.io|\S+\.\S+/\S+:\S+): not found$`, not: `npm |^\s*Warning  |failed to solve|Retrying|back off`, need: "docker|daemon|image|registry|dockerfile|metadata", conf: 0.94,
		yes: []string{"docker: Error response from daemon: pull access denied for registry.example/acme/api, repository does not exist", "Error response from daemon: manifest for python:3.14t not found: manifest unknown", "ERROR: docker.io/library/nope:latest: not found"},
		no:  []string{"Unable to find image 'x' locally"},
	},
	{
		name: "docker.runtime", lits: []string{"oci runtime", "exec format error", "executable file not found", "no such file or directory: unknown", "unable to start container", "container name"}, re: `OCI runtime|exec format error|executable file not found in \$?PATH|: unknown\.?$|[Cc]onflict\. The container name`, need: "docker|container|daemon|exec|runtime", conf: 0.94,
		yes: []string{`docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: exec: "foo": executable file not found in $PATH: unknown.`, "exec /entrypoint.sh: exec format error"},
		no:  []string{"container started"},
	},
	{
		name: "docker.file", lits: []string{"dockerfile parse error", "unknown instruction", "failed to read dockerfile", "failed to parse", "dockerfile cannot be empty", "unknown flag", "target stage", "failed to process", "unable to prepare context"}, re: `[Dd]ockerfile parse error|unknown instruction:|failed to read dockerfile|failed to parse (?:stage|platform)|Dockerfile cannot be empty|target stage .* could not be found|failed to process "|unable to prepare context`, conf: 0.94,
		yes: []string{"ERROR: failed to solve: dockerfile parse error on line 3: unknown instruction: RUNN", "ERROR: failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory"},
		no:  []string{"load build definition from Dockerfile"},
	},
	{
		name: "docker.error", lits: []string{"error response from daemon"}, re: `Error response from daemon: `, conf: 0.9,
		yes: []string{"Error response from daemon: No such container: x"},
		no:  []string{"daemon ready"},
	},
	{
		name: "docker.cli", lits: []string{"docker: ", "unknown shorthand flag", "unknown flag: ", "\" requires "}, re: `^docker: |^unknown (?:shorthand )?flag: |^"docker [^"]+" requires `, not: `Error response from daemon`, need: "docker", conf: 0.85,
		yes: []string{"docker: unknown command: docker frob", "\"docker buildx build\" requires 1 argument.", "docker: invalid reference format."},
		no:  []string{"Run 'docker --help' for more information"},
	},
	{
		name: "docker.compose", lits: []string{"service ", "yaml: ", "validating ", "additional property", "dependency failed to start", "network ", "no configuration file"}, re: `^(?:service "\S+" (?:refers|depends|has|didn't)|yaml: |validating .*(?:compose|yml)|\S* ?Additional property|dependency failed to start|network \S+ (?:declared|not found)|no configuration file provided|no such service)`, need: "compose|service|container", conf: 0.88,
		yes: []string{`service "api" refers to undefined network backend: invalid compose project`, "dependency failed to start: container db-1 is unhealthy"},
		no:  []string{"Container db-1  Started"},
	},
}

// kubectl describe and get events: a reason, an age, a message.
var kubernetesRules = []rule{
	{
		name: "k8s.oom", lits: []string{"oomkilled"}, re: `Reason:\s+OOMKilled|\bOOMKilled\b`, conf: 0.96,
		yes: []string{"      Reason:       OOMKilled"},
		no:  []string{"      Reason:       Error"},
	},
	{
		name: "k8s.pull", lits: []string{"failed to pull image", "invalidimagename", "failed to apply default image tag"}, re: `Failed to pull image|InvalidImageName|Failed to apply default image tag`, conf: 0.96,
		yes: []string{`  Warning  Failed     52m (x4 over 53m)     kubelet            Failed to pull image "x": rpc error: code = NotFound`},
		no:  []string{"  Warning  Failed     52m     kubelet            Error: ErrImagePull"},
	},
	{
		name: "k8s.config", lits: []string{"error: configmap", "error: secret", "couldn't find key", "createcontainerconfigerror", "error: container has", "failed to create containerd task", "failed to start container", "runcontainererror"}, re: `(?i)Error: (?:configmap|secret|couldn't find key|container has|failed to (?:create|start))|failed to create containerd task`, conf: 0.95,
		yes: []string{`  Warning  Failed     2s (x3 over 20s)  kubelet            Error: configmap "api" not found`},
		no:  []string{"Error: ImagePullBackOff"},
	},
	{
		name: "k8s.mount", lits: []string{"failedmount", "failedattachvolume", "mountvolume", "unable to attach or mount"}, re: `FailedMount|FailedAttachVolume|MountVolume\.\S+ failed|Unable to attach or mount`, conf: 0.95,
		yes: []string{`  Warning  FailedMount  3s  kubelet  MountVolume.SetUp failed for volume "x" : secret "y" not found`},
		no:  []string{"SuccessfulMountVolume"},
	},
	{
		name: "k8s.scheduling", lits: []string{"failedscheduling", "nodes are available"}, re: `FailedScheduling|nodes are available: `, conf: 0.95,
		yes: []string{"  Warning  FailedScheduling  5m  default-scheduler  0/12 nodes are available: 12 Insufficient cpu."},
		no:  []string{"  Normal   Scheduled  53m  default-scheduler  Successfully assigned"},
	},
	{
		name: "k8s.unhealthy", lits: []string{"unhealthy", "probe failed"}, re: `\bUnhealthy\b|(?:Readiness|Liveness|Startup) probe (?:failed|errored)`, conf: 0.94,
		yes: []string{`  Warning  Unhealthy  49s (x3 over 53m)   kubelet            Readiness probe failed: dial tcp`},
		no:  []string{"Healthy"},
	},
	{
		name: "k8s.event", lits: []string{"failedcreate", "evicted", "failedbinding", "provisioningfailed", "failedcreatepodsandbox", "networknotready", "nodenotready", "failedgetresourcemetric", "failedpoststarthook", "freediskspacefailed", "progressdeadlineexceeded", "backofflimitexceeded", "deadlineexceeded", "forbidden"}, re: `\b(?:FailedCreate\w*|Evicted|FailedBinding|ProvisioningFailed|NetworkNotReady|NodeNotReady|FailedPostStartHook|FreeDiskSpaceFailed|ProgressDeadlineExceeded|BackoffLimitExceeded|DeadlineExceeded)\b`, conf: 0.92,
		yes: []string{"  Warning  FailedCreate  3s  replicaset-controller  Error creating: pods \"x\" is forbidden: exceeded quota"},
		no:  []string{"  Normal  SuccessfulCreate  3s  replicaset-controller  Created pod: x"},
	},
	{
		name: "k8s.terminated", lits: []string{"reason:"}, re: `^\s+Reason:\s+(?:Error|ContainerCannotRun|StartError|ContainerStatusUnknown|Unknown)\b`, conf: 0.9,
		detail: detail{how: after, re: `^\s+(Exit Code:\s+\d+|Message:\s+.+)`, lines: 3},
		yes:    []string{"      Reason:       Error"},
		no:     []string{"      Reason:       CrashLoopBackOff", "      Reason:       Completed"},
	},
	{
		name: "k8s.backoff", lits: []string{"back-off restarting", "crashloopbackoff", "errimagepull", "imagepullbackoff"}, re: `Back-off restarting|CrashLoopBackOff|ErrImagePull|ImagePullBackOff`, conf: 0.7,
		yes: []string{"  Warning  BackOff  3s (x9 over 62m)  kubelet  Back-off restarting failed container api"},
		no:  []string{"Running"},
	},
}

var kubectlRules = []rule{
	{
		name: "kubectl.error", lits: []string{"the connection to the server", "unable to connect to the server", "error: ", "error from server", "error validating", " is invalid", "unable to recognize", "no matches for kind", "exceeded its progress deadline", "timed out waiting"},
		re: `^(?:The connection to the server|Unable to connect to the server|[Ee]rror: |Error from server|error (?:validating|when|parsing|converting)|The \S+ "\S*" is invalid|unable to recognize|error: unable|.*exceeded its progress deadline|.*timed out waiting for)`, need: "kubectl|server|resource|kind|apiversion|deployment|pod|namespace|yaml|helm|upgrade failed|installation failed|chart|kube|context", conf: 0.9, pick: last,
		detail: detail{how: after, re: `^\*? ?((?:spec|metadata|data)\S*: .+)`, lines: 3},
		yes:    []string{"The connection to the server 127.0.0.1:29320 was refused - did you specify the right host or port?", "error: error parsing bad.yaml: error converting YAML to JSON: yaml: line 3: mapping values are not allowed in this context", `Error from server (NotFound): pods "x" not found`, "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"},
		no:     []string{`"Unhandled Error" err="couldn't get current server API group list"`},
	},
	{
		name: "kubectl.klog", lits: []string{"couldn't get current server api", "couldn't get resource list", "failed to "}, re: `couldn't get current server API|couldn't get resource list`, conf: 0.8,
		yes: []string{`"Unhandled Error" err="couldn't get current server API group list: dial tcp"`},
		no:  []string{"got server"},
	},
}

// Terraform draws a frame around a message on a terminal and none elsewhere;
// the title often has no name in it, the body, which is wrapped, has.
var terraformRules = []rule{
	{
		name: "terraform.error", lits: []string{"error: "}, re: `^Error: \S`, not: `Terraform encountered problems during initiali|^Error: Process completed`, need: "terraform|.tf line|.tf |tofu|provider|\u2577|tfstate", conf: 0.92,
		detail: detail{how: para, re: `^\s*(?:Lock Info:|Terraform acquires|Stack trace|[0-9a-z-]+\.\w+: (?:Creating|Destroying|Refreshing|Still|Modifications))`},
		yes:    []string{"Error: Reference to undeclared input variable", "Error: local-exec provisioner error"},
		no:     []string{"Warning: Unable to open CLI configuration file", "Error message: operation error DynamoDB", "Error: Terraform encountered problems during initialisation, including problems"},
	},
	{
		name: "terraform.json", lits: []string{`"summary":`}, re: `^\s*"summary":\s*"(.+)"`, need: `"diagnostics"`, keep: `"summary":\s*"(.+)"`, conf: 0.9,
		detail: detail{how: after, re: `^\s*"detail":\s*"(.+)"`, lines: 1},
		yes:    []string{`      "summary": "Call to unknown function",`},
		no:     []string{`      "severity": "error",`},
	},
	{
		name: "terraform.usage", lits: []string{"terraform has no command", "failed to read", "no configuration files", "error parsing command-line", "invalid option", "too many command line"}, re: `^(?:Terraform has no command|Too many command line arguments|Error parsing command-line|Failed to read)`, conf: 0.9,
		yes: []string{`Terraform has no command named "frob".`},
		no:  []string{"Terraform will perform the following actions:"},
	},
	{
		name: "terraform.log", lits: []string{"erro[", "error  ", "[error]"}, re: `^(?:ERRO\[\d+\]|\S+ ERROR +|.*\[ERROR\]) `, need: "terragrunt|terraform", conf: 0.8,
		yes: []string{"ERRO[0003] 1 error occurred: exit status 1 "},
		no:  []string{"INFO[0003] x"},
	},
}
