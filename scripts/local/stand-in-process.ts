import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { RunningServer } from '../node/loopback-server.ts'
import { OptionError } from '../node/start-error.ts'

type OptionValues = Record<string, string | boolean | undefined>

/** Time that a clean stop may take before the process gives up, in milliseconds. */
const CLOSE_LIMIT_MS = 8_000

/**
 * Runs a stand-in as a process of its own: reads the command line, starts it, and prints one JSON line
 * `{"ready":true,"port":N}` on stdout. SIGINT and SIGTERM stop it; with `--parent`, so does the end of stdin, when the
 * process that started it is gone.
 *
 * Exit codes: 0 after a clean stop, 2 for a wrong command line, 1 for everything else. A failure is one line
 * on stderr.
 *
 * @param name what the lines on stderr begin with
 * @param options the options besides `--port` and `--parent`, as `util.parseArgs` takes them
 * @param start starts the stand-in from the parsed options; `port` is already checked
 */
export async function runAsProcess(
  name: string,
  options: ParseArgsOptionsConfig,
  start: (values: OptionValues, port: number) => Promise<RunningServer>,
): Promise<void> {
  const fail = (error: unknown, exitCode: number): void => {
    process.stderr.write(`${name}: ${describeFailure(error)}\n`)
    process.exit(exitCode)
  }
  let values: OptionValues
  let port: number
  try {
    values = readOptions(options)
    port = readPort(values.port)
  } catch (error) {
    return fail(error, 2)
  }
  // The watch begins before the start: a parent that ends while a database opens must not leave an orphan.
  let running: RunningServer | undefined
  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    if (running === undefined) process.exit(0)
    setTimeout(() => fail(new Error('did not stop in time'), 1), CLOSE_LIMIT_MS).unref()
    running.close().then(
      () => process.exit(0),
      (error: unknown) => fail(error, 1),
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  if (values.parent === true) watchParent(stop)
  try {
    running = await start(values, port)
  } catch (error) {
    return fail(error, error instanceof OptionError ? 2 : 1)
  }
  process.stdout.write(`${JSON.stringify({ ready: true, port: running.port })}\n`)
}

function readOptions(options: ParseArgsOptionsConfig): OptionValues {
  const { values } = parseArgs({
    options: { ...options, port: { type: 'string' }, parent: { type: 'boolean' } },
    strict: true,
    allowPositionals: false,
  })
  return values as OptionValues
}

function readPort(value: string | boolean | undefined): number {
  if (value === undefined) return 0
  const port = Number(value)
  if (typeof value !== 'string' || !/^\d{1,5}$/.test(value) || port > 65_535) {
    throw new OptionError(`--port takes a number from 0 to 65535, not "${String(value)}"`)
  }
  return port
}

function watchParent(stop: () => void): void {
  process.stdin.on('end', stop)
  process.stdin.on('close', stop)
  process.stdin.on('error', stop)
  process.stdin.resume()
}

function describeFailure(error: unknown): string {
  const failure = error as NodeJS.ErrnoException & { port?: number }
  if (failure?.code === 'EADDRINUSE') return `port ${failure.port} is already in use`
  if (failure?.code === 'EACCES' && failure.port !== undefined) return `port ${failure.port} may not be used`
  const message = error instanceof Error ? error.message : String(error)
  return message.split('\n', 1)[0] ?? message
}
