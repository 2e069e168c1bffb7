import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inheritedEnvironment } from '../node/inherited-environment.ts'
import { writePrivateFile } from '../node/private-file.ts'
import { type LoadPlan, type LoadResult, methodOf } from './load.ts'

/** Whether `wrk` is installed. It generates load at a fraction of what Node needs for it. */
export function hasWrk(): boolean {
  return spawnSync('wrk', ['-v'], { stdio: 'ignore' }).error === undefined
}

/**
 * Runs a load with `wrk`. Of the times of calls it reports percentiles: `totals` has the hundred of them. It does not know
 * first bytes. Calls that still run at the end are cut off and not counted. It takes whole seconds only, and the first key of
 * a call.
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
  const { headers, body } = call
  // A JSON string without control characters above escapes is a Lua string too.
  const lines = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  )
  return `wrk.method = "${methodOf(body)}"
${lines.join('\n')}
${body === undefined ? '' : `wrk.body = ${JSON.stringify(body)}`}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format("\\nresult %d %d %d %d %d %d %d\\npercentiles", summary.requests, summary.duration,
    e.status, e.connect, e.read, e.write, e.timeout))
  for share = 1, 100 do io.write(string.format(" %d", latency:percentile(math.min(share, 99.999)))) end
  io.write("\\n")
end
`
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
  const numbersOf = (line: string) =>
    new RegExp(`^${line} ([\\d ]+)$`, 'm').exec(output)?.[1]?.split(' ').map(Number)
  const numbers = numbersOf('result')
  const percentiles = numbersOf('percentiles')
  if (numbers === undefined || percentiles === undefined) throw new Error('wrk gave no report')
  const [calls = 0, microseconds = 0, status = 0, ...socketErrors] = numbers
  const broken = socketErrors.reduce((sum, count) => sum + count, 0)
  const firstFailure = status > 0 ? `${status} answers were no success` : `${broken} connections failed`
  return {
    calls,
    failures: status + broken,
    firstFailure: status + broken > 0 ? firstFailure : null,
    milliseconds: microseconds / 1_000,
    totals: percentiles.map((microseconds) => microseconds / 1_000),
    firstBytes: [],
  }
}
