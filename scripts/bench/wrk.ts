import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inheritedEnvironment } from '../local/children.ts'
import { writePrivateFile } from '../local/private-file.ts'
import { type LoadPlan, type LoadResult, methodOf } from './load.ts'

/** Whether `wrk` is installed. It generates load at a fraction of what Node needs for it. */
export function hasWrk(): boolean {
  return spawnSync('wrk', ['-v'], { stdio: 'ignore' }).error === undefined
}

/**
 * Runs a load with `wrk`, which counts calls and failures by status but does not report single times. Calls that still
 * run at the end are cut off and not counted. It takes whole seconds only.
 *
 * @throws when wrk fails or its report cannot be read
 */
export async function runWrk(plan: LoadPlan): Promise<LoadResult> {
  const script = join(tmpdir(), `headgate-wrk-${process.pid}-${plan.port}.lua`)
  writePrivateFile(script, luaOf(plan))
  try {
    const seconds = Math.max(1, Math.round(plan.milliseconds / 1_000))
    const url = `http://127.0.0.1:${plan.port}${plan.call.path}`
    return resultOf(
      await run(['-t', '1', '-c', String(plan.connections), '-d', `${seconds}s`, '-s', script, url]),
    )
  } finally {
    rmSync(script, { force: true })
  }
}

function luaOf({ call }: LoadPlan): string {
  const { headers, body, keys } = call
  // A JSON string without control characters above escapes is a Lua string too.
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  )
  return `wrk.method = "${methodOf(body)}"
${lines.join('\n')}
${body === undefined ? '' : `wrk.body = ${JSON.stringify(body)}`}
${keys === undefined ? '' : luaTurns(keys)}
function done(summary)
  local e = summary.errors
  io.write(string.format("\\nresult %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    e.status, e.connect, e.read, e.write, e.timeout))
end
`
}

/** Requests with each of the keys in turn, all formatted before the first is sent. */
function luaTurns(keys: readonly string[]): string {
  return `local keys = { ${keys.map((key) => JSON.stringify(key)).join(', ')} }
local requests, turn = {}, 0
function init()
  for i, key in ipairs(keys) do
    wrk.headers["authorization"] = "Bearer " .. key
    requests[i] = wrk.format()
  end
end
function request()
  turn = turn % #requests + 1
  return requests[turn]
end`
}

function run(parameters: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', parameters, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: inheritedEnvironment(),
    })
    let output = ''
    child.stdout.on('data', (text: Buffer) => {
      output += text.toString()
    })
    child.once('error', reject)
    child.once('close', () => resolve(output))
  })
}

function resultOf(output: string): LoadResult {
  const numbers = /^result ([\d ]+)$/m.exec(output)?.[1]?.split(' ').map(Number)
  if (numbers === undefined) throw new Error('wrk gave no report')
  const [calls = 0, microseconds = 0, status = 0, ...socketErrors] = numbers
  const broken = socketErrors.reduce((sum, count) => sum + count, 0)
  const firstFailure = status > 0 ? `${status} answers were no success` : `${broken} connections failed`
  return {
    calls,
    failures: status + broken,
    firstFailure: status + broken > 0 ? firstFailure : null,
    milliseconds: microseconds / 1_000,
    totals: [],
    firstBytes: [],
  }
}
