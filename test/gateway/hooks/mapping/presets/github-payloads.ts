/** Deliveries in GitHub's format, shortened; names are made up. */
const repository = {
  id: 1,
  full_name: "octo/lighthouse",
  html_url: "https://github.com/octo/lighthouse",
  private: false,
};
const sender = { login: "ada", id: 2, type: "User" };
const pull = {
  number: 17,
  title: "Turn the lamp faster",
  state: "open",
  merged: false,
  body: "It was too slow.\n\nFixes #3.",
  html_url: "https://github.com/octo/lighthouse/pull/17",
  head: { ref: "faster", label: "ada:faster", sha: "9f1c" },
  base: { ref: "main" },
};
const issue = {
  number: 3,
  title: "The lamp is slow",
  state: "open",
  body: "Ships wait.",
  html_url: "https://github.com/octo/lighthouse/issues/3",
};

export const push = {
  ref: "refs/heads/main",
  before: "0".repeat(40),
  after: "a".repeat(40),
  forced: false,
  deleted: false,
  compare: "https://github.com/octo/lighthouse/compare/000...aaa",
  commits: Array.from({ length: 25 }, (_, i) => ({
    id: `${i}`.padStart(40, "c"),
    message: `Commit ${i}\n\nLonger text`,
    author: { name: "Ada", email: "ada@example.com" },
  })),
  repository,
  sender,
};
export const pullRequest = { action: "opened", number: 17, pull_request: pull, repository, sender };
export const merged = { ...pullRequest, action: "closed", pull_request: { ...pull, state: "closed", merged: true } };
export const review = {
  action: "submitted",
  review: { state: "changes_requested", body: "Use a gear.", html_url: "https://github.com/r/1" },
  pull_request: pull,
  repository,
  sender,
};
export const issueOpened = { action: "opened", issue, repository, sender };
export const comment = {
  action: "created",
  issue: { ...issue, pull_request: { url: "x" } },
  comment: { body: "I agree", html_url: "https://github.com/c/1" },
  repository,
  sender,
};
export const release = {
  action: "published",
  release: { tag_name: "v1.2.0", name: "Bright", body: "- brighter", html_url: "https://github.com/rel/1" },
  repository,
  sender,
};
export const workflow = {
  action: "completed",
  workflow_run: {
    name: "CI",
    head_branch: "main",
    head_commit: { message: "Fix lamp" },
    status: "completed",
    conclusion: "failure",
    html_url: "https://github.com/run/1",
  },
  repository,
  sender,
};
export const ping = { zen: "Keep it logically awesome.", hook_id: 5, repository, sender };
