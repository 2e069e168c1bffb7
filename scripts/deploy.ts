// npm run deploy: deploys Headgate to Cloudflare (docs/deployment.md; --help names the options).
import { createInterface } from 'node:readline/promises'
import { realClock, refuseInterrupted } from './deploy/deploy-clock.ts'
import { runDeploy } from './deploy/run-deploy.ts'

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort())
// A reader that goes away (`| head`) must not end a deployment between two of its steps.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

async function promptForAnswer(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question, { signal: interruption.signal })
  } catch (error) {
    refuseInterrupted(interruption.signal)
    throw error
  } finally {
    terminal.close()
  }
}

process.exitCode = await runDeploy(process.argv.slice(2), {
  environment: process.env,
  fetch,
  clock: realClock,
  print: (line) => process.stdout.write(`${line}\n`),
  printError: (line) => process.stderr.write(`${line}\n`),
  ...(process.stdin.isTTY && process.stderr.isTTY && { prompt: promptForAnswer }),
  signal: interruption.signal,
})
