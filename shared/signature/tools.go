package signature

// tools is the table of all tools. Rules of a tool's own sets are tried first,
// then those of every tool, as most tools run others; `late` and `generic` last.
var tools = []*tool{
	{name: "npm", alias: []string{"npx", "npm-ci"}, rules: npmRules, marks: []string{"npm error", "npm err!", "npm warn", "npm notice"}},
	{name: "yarn", alias: []string{"yarn1", "berry"}, rules: yarnRules, marks: []string{"yarn install v", "yarn run v", "yn0000", "yarn.lock"}},
	{name: "pnpm", rules: pnpmRules, marks: []string{"err_pnpm_", "pnpm"}},
	{name: "tsc", alias: []string{"typescript", "vue-tsc"}, rules: tscRules, marks: []string{"error ts"}},
	{name: "eslint", alias: []string{"lint"}, rules: eslintRules, marks: []string{"✖", "eslint"}},
	{name: "vitest", rules: vitestRules, sets: []string{"vitest", "jest", "node"}, marks: []string{"vitest", "failed tests", "⎯⎯⎯"}},
	{name: "mocha", alias: []string{"tap", "node-test", "ava"}, rules: mochaRules, sets: []string{"mocha", "node"}, marks: []string{" failing", " passing"}},
	{name: "jest", rules: jestRules, sets: []string{"jest", "tsc", "node"}, marks: []string{"test suites:", "●"}},
	{name: "node", alias: []string{"nodejs", "javascript", "js", "ts-node", "tsx", "bun", "deno", "webpack", "vite", "next"}, rules: nodeRules, marks: []string{"node:internal", "node.js v", "node_modules"}},

	{name: "go", alias: []string{"golang", "go-test", "gotest", "gotestsum", "golangci-lint"}, rules: goRules, marks: []string{"--- fail:", "fail\t", "ok  \t", "goroutine ", "go: "}},
	{name: "cargo", alias: []string{"rust", "rustc"}, rules: cargoRules, marks: []string{"error[e", "could not compile", "   compiling ", "test result:", "panicked at"}},

	{name: "pytest", rules: pytestRules, sets: []string{"pytest", "pytest-late", "python"}, marks: []string{"test session starts", "short test summary", "= failures =", "= errors =", "collected "}},
	{name: "pip", alias: []string{"pip3", "uv", "poetry", "pipenv", "conda"}, rules: pipRules, marks: []string{"collecting ", "looking in indexes", "no matching distribution", "requirement already satisfied"}},
	{name: "python", alias: []string{"python3", "py", "unittest", "mypy", "ruff", "flake8", "tox", "nox", "django"}, rules: pythonRules, sets: []string{"pytest", "python", "pytest-late"}, marks: []string{"traceback (most recent call last)", `  file "`}},

	{name: "maven", alias: []string{"mvn", "mvnw"}, rules: mavenRules, sets: []string{"maven", "java"}, marks: []string{"[info] scanning for projects", "[info] build failure", "[error] failed to execute goal", "mojo"}},
	{name: "gradle", alias: []string{"gradlew", "kotlin", "android"}, rules: gradleRules, sets: []string{"gradle", "java"}, marks: []string{"* what went wrong:", "> task :", "build failed in", "gradle"}},
	{name: "java", alias: []string{"javac", "jvm", "junit", "ant", "sbt", "scala"}, rules: javaRules, marks: []string{"\tat ", "exception in thread", ".java:"}},

	{name: "dotnet", alias: []string{"msbuild", "nuget", "csharp"}, rules: dotnetRules, marks: []string{"determining projects to restore", "dotnet ", ".csproj"}},

	{name: "docker", alias: []string{"buildx", "buildkit", "docker-compose", "compose", "podman"}, rules: dockerRules, marks: []string{"failed to solve", "[internal] load", "error response from daemon", "docker:", "dockerfile"}},
	{name: "kubernetes", alias: []string{"k8s", "kube"}, rules: kubernetesRules, sets: []string{"kubernetes", "kubectl"}, marks: []string{"kubelet", "default-scheduler", "restart count:", "namespace:"}},
	{name: "kubectl", alias: []string{"helm", "kustomize"}, rules: kubectlRules, sets: []string{"kubectl", "kubernetes"}, marks: []string{"the connection to the server", "error from server", "memcache.go", "kubectl"}},
	{name: "terraform", alias: []string{"tofu", "opentofu", "terragrunt", "tf"}, rules: terraformRules, marks: []string{"terraform", ".tf line", "opentofu"}},

	{name: "cmake", alias: []string{"ctest"}, rules: cmakeRules, sets: []string{"cmake", "gcc", "ld", "make"}, marks: []string{"cmake error", "-- configuring incomplete", "-- the c compiler", "cmakelists.txt"}},
	{name: "gcc", alias: []string{"g++", "clang", "clang++", "cc", "c++", "msvc", "cl", "nvcc"}, rules: gccRules, sets: []string{"gcc", "ld", "make"}, marks: []string{"compilation terminated.", "collect2:", "in file included from"}},
	{name: "ld", alias: []string{"lld", "link"}, rules: ldRules, sets: []string{"ld", "gcc"}, marks: []string{"collect2:", "ld returned"}},
	{name: "make", alias: []string{"gmake", "gnumake", "ninja", "bazel", "meson", "autotools"}, rules: makeRules, sets: []string{"gcc", "ld", "make", "cmake"}, marks: []string{"make: ***", "make[1]", "ninja:", "makefile:"}},

	{name: "git", rules: gitRules, marks: []string{"fatal: ", "cloning into", "auto-merging", "! [rejected]"}},
	{name: "shell", alias: []string{"bash", "sh", "zsh", "cmd", "powershell", "curl"}, rules: shellRules, sets: []string{"shell", "git"}, marks: []string{"bash: ", "sh: ", "command not found"}},

	{name: "gha", alias: []string{"github", "github-actions", "actions", "act"}, sets: []string{"ci-job"}, marks: []string{"process completed with exit code"}, ci: true},
	{name: "gitlab", alias: []string{"gitlab-ci", "gitlab-runner"}, sets: []string{"ci-job"}, marks: []string{"running with gitlab-runner", "error: job failed"}, ci: true},
	{name: "jenkins", sets: []string{"ci-job"}, marks: []string{"[pipeline]", "finished: failure", "script returned exit code"}, ci: true},
	{name: "buildkite", sets: []string{"ci-job"}, marks: []string{"the command exited with status", "buildkite"}, ci: true},
	{name: "azure", alias: []string{"azure-pipelines", "azdo", "vsts"}, sets: []string{"ci-job"}, marks: []string{"bash exited with code", "##[section]", "finishing: "}, ci: true},
	{name: "circleci", alias: []string{"circle"}, sets: []string{"ci-job"}, marks: []string{"exited with code exit status", "circleci"}, ci: true},
	{name: "ci", alias: []string{"travis", "drone", "woodpecker", "bitbucket", "teamcity"}, rules: ciInfra, sets: []string{"ci-job"}, ci: true},
	{name: "ci-job", rules: ciJob, ci: true},

	{name: "pytest-late", rules: pytestLate},
	{name: "program", rules: programRules, own: true},
	{name: "late", own: true, rules: append(lateRules[:len(lateRules):len(lateRules)], lateProcess...)},
	{name: "generic", own: true, rules: genericRules},
}
