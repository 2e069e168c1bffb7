/** The load generator: the requested number of connections, each with one call at a time. */
import { parentPort, workerData } from 'node:worker_threads'
import { HttpConnection, type WireAnswer } from './http-connection.ts'
import { type LoadPlan, type LoadResult, requestsOf } from './load.ts'

async function generate(plan: LoadPlan): Promise<LoadResult> {
  const requests = requestsOf(plan.call, plan.port)
  const totals: number[] = []
  const firstBytes: number[] = []
  let failures = 0
  let firstFailure: string | null = null
  let started = 0
  const mostCalls = plan.calls ?? Number.POSITIVE_INFINITY
  const begin = performance.now()
  const fail = (reason: string): void => {
    failures += 1
    firstFailure ??= reason
  }

  const callAfterCall = async (): Promise<void> => {
    const connection = await HttpConnection.open(plan.port)
    try {
      while (started < mostCalls && performance.now() - begin < plan.milliseconds) {
        const request = requests[started % requests.length]
        if (request === undefined) return
        started += 1
        const answer = await connection.send(request)
        const reason = failureOf(answer, plan)
        if (reason !== null) fail(reason)
        totals.push(answer.total)
        firstBytes.push(answer.firstByte)
      }
    } finally {
      connection.close()
    }
  }

  const runs = Array.from({ length: plan.connections }, () =>
    callAfterCall().catch((error: Error) => fail(error.message)),
  )
  await Promise.all(runs)
  const milliseconds = performance.now() - begin
  return { calls: totals.length, failures, firstFailure, milliseconds, totals, firstBytes }
}

function failureOf(answer: WireAnswer, { call }: LoadPlan): string | null {
  if (answer.status < 200 || answer.status > 299) return `status ${answer.status}`
  if (!answer.tail.includes(call.ending)) return 'the answer is incomplete'
  return null
}

const plan: LoadPlan = workerData
generate(plan).then((result) => parentPort?.postMessage(result))
