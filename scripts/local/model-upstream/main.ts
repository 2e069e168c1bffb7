import { parseArgs } from 'node:util'
import { startModelUpstream } from './server.ts'

const usage = 'usage: main.ts --port N [--api-key KEY] [--parent] [--quiet] [--no-record]'

function readArguments(): {
  port: number
  apiKey: string | undefined
  parent: boolean
  quiet: boolean
  record: boolean
} {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      'api-key': { type: 'string' },
      parent: { type: 'boolean', default: false },
      quiet: { type: 'boolean', default: false },
      'no-record': { type: 'boolean', default: false },
    },
  })
  const port = Number(values.port)
  if (values.port === undefined || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(usage)
  return {
    port,
    apiKey: values['api-key'],
    parent: values.parent,
    quiet: values.quiet,
    record: !values['no-record'],
  }
}

async function main(): Promise<void> {
  const { port, apiKey, parent, quiet, record } = readArguments()
  const onAnswered = quiet ? undefined : (line: string) => process.stderr.write(`model-upstream: ${line}\n`)
  const upstream = await startModelUpstream({ port, apiKey, record, onAnswered })
  const stop = (): void => void upstream.close().then(() => process.exit(0))
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  if (parent) {
    // The parent holds the other end of stdin: when the parent dies, by whatever signal, stdin ends.
    process.stdin.once('end', stop).once('close', stop).resume()
  }
  process.stdout.write(`${JSON.stringify({ ready: true, port: upstream.port })}\n`)
}

function explain(error: unknown, port: string): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : undefined
  return code === 'EADDRINUSE' ? `port ${port} is in use` : error.message
}

main().catch((error: unknown) => {
  const port = process.argv[process.argv.indexOf('--port') + 1] ?? ''
  process.stderr.write(`model-upstream: ${explain(error, port)}\n`)
  process.exit(1)
})
