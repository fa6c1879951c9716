// One call from start to end: rounds of questions, polling of tasks, and cancellation.

import { answersTo } from "./questions.js";

const MAX_ROUNDS = 25;

// `call` is {method, params, name, mirrored, asTask}; `show` has onNotification, onTask, onAsking and questions.
export async function perform(client, call, show, signal) {
  let carried = {};
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const options = { ...call, onNotification: show.onNotification, signal, speaks: true };
    const { result, size } = await client.request(call.method, { ...call.params, ...carried }, options);
    if (result.resultType === "task") return follow(client, result, show, signal);
    if (result.resultType !== "input_required") return { result, size };
    const answers = await asked(result.inputRequests ?? {}, show, signal);
    carried = { inputResponses: written(answers), requestState: JSON.stringify(result.requestState) };
  }
  throw new Error(`The server asked more than ${MAX_ROUNDS} times`);
}

async function follow(client, begun, show, signal) {
  const id = begun.taskId;
  const options = { name: id, asTask: true };
  const params = { taskId: JSON.stringify(id) };
  const stop = () => client.request("tasks/cancel", params, options).catch(() => {});
  signal.addEventListener("abort", stop);
  try {
    for (let task = begun; ;) {
      show.onTask(task);
      if (task.status === "completed") return { result: task.result };
      if (task.status === "failed") throw Object.assign(new Error(task.error?.message ?? "the task failed"), task.error);
      if (task.status === "cancelled") throw new Error("The task was cancelled");
      if (task.status === "input_required" && task.inputRequests) {
        const answers = await asked(task.inputRequests, show, signal);
        await client.request("tasks/update", { ...params, inputResponses: written(answers) }, { ...options, signal });
      } else {
        await pause(Math.min(task.pollIntervalMs ?? 1000, 5000), signal);
      }
      task = (await client.request("tasks/get", params, { ...options, signal })).result;
    }
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function asked(requests, show, signal) {
  show.onAsking(true);
  const answers = await answersTo(requests, show.questions, signal);
  show.onAsking(false);
  return answers;
}

function written(answers) {
  return `{${Object.entries(answers).map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`;
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("cancelled", "AbortError"));
    });
  });
}
