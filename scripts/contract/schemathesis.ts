import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { documentFile } from '../generate-openapi.ts'
import { writePrivateFile } from '../node/private-file.ts'
import { StartError } from '../node/start-error.ts'
import { EXCEPTIONS } from './exceptions.ts'

/** One document to be tested. */
export interface ContractTarget {
  name: string
  /** Path of the document on the gateway. */
  document: string
  baseUrl: string
  token: string
  /** Further settings of schemathesis, as TOML. */
  settings?: string
  /** Ids of objects that exist, by the parameter of paths that takes them. */
  ids: Readonly<Record<string, string>>
}

export interface ContractOptions {
  /** Random cases of each operation and phase. */
  examples: number
  seed: number
  workers: number
}

/** Members of bodies that hold an id, and the parameter whose values they take. */
const BODY_IDS: Readonly<Record<string, string>> = {
  model: 'modelId',
  agentId: 'agentId',
  connection_id: 'connectionId',
  user_id: 'userId',
  created_by: 'userId',
  policy_id: 'policyId',
  provider_id: 'providerId',
}

/** What one run of schemathesis found, in numbers. */
export interface ContractResult {
  operations: number
  tested: number
  cases: number
  /** Failures by what was wrong, each with the operations that it concerns. */
  failures: Array<{ title: string; count: number; operations: string[] }>
  errors: Array<{ title: string; count: number }>
  /** Explained failures, by row of `EXCEPTIONS`. */
  explained: number[]
  seconds: number
  /** What schemathesis printed, with requests that repeat each failure. */
  log: string
}

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'positive_data_acceptance',
  'missing_required_header',
  'unsupported_method',
  'allow_header_conformance',
  'use_after_free',
  'ensure_resource_availability',
  'ignored_auth',
]

/** Runs schemathesis against a document. @throws StartError if it ends without a report. */
export async function runSchemathesis(
  program: string,
  target: ContractTarget,
  options: ContractOptions,
  folder: string,
): Promise<ContractResult> {
  const own = join(folder, target.name)
  mkdirSync(own, { recursive: true, mode: 0o700 })
  const settings = join(own, 'schemathesis.toml')
  writePrivateFile(settings, settingsOf(target, options))
  const counts = join(own, 'explained.json')
  const log = join(own, 'log.txt')
  const command = ['--config-file', settings, 'run', documentFile(target.document), '--url', target.baseUrl]
  const report = ['--report', 'json', '--report-dir', own, '--no-color', '--checks', CHECKS.join(',')]
  const text = await printed(program, [...command, ...report], own, {
    EXCEPTIONS: JSON.stringify(EXCEPTIONS),
    EXCEPTION_COUNTS: counts,
    MODEL: target.ids.modelId ?? '',
  })
  writeFileSync(log, text)
  const file = readdirSync(own).findLast((name) => name.startsWith('json-'))
  // It makes the file when it starts, and writes it when it ends.
  if (file === undefined || statSync(join(own, file)).size === 0) {
    throw new StartError(`schemathesis ended without a report; see ${log}`)
  }
  return resultOf(readJson(join(own, file)) as Report, readJson(counts) as number[], log)
}

/** The configuration: https://schemathesis.readthedocs.io/en/stable/reference/configuration/ */
function settingsOf(
  { token, ids, settings: more = '' }: ContractTarget,
  { examples, seed, workers }: ContractOptions,
): string {
  const text = JSON.stringify
  // The version is a number, of which the first is always there.
  const names = Object.keys(ids).filter((name) => !name.includes('/') && name !== 'version')
  // Most requests are about things that exist; ids of the others are invented, or come from earlier answers.
  const share = (name: string) => (name === 'organizationId' || name === 'model' ? 0.9 : 0.5)
  const bodies = Object.entries(BODY_IDS).filter(([, name]) => ids[name] !== undefined)
  return `hooks = ${text(join(import.meta.dirname, 'hooks.py'))}
seed = ${seed}
workers = ${workers}
continue-on-failure = true
request-timeout = 60
headers = { Authorization = ${text(`Bearer ${token}`)} }
cache = { enabled = false }

[generation]
max-examples = ${examples}
database = "none"

[checks.positive_data_acceptance]
# 422 is for what a schema cannot say: a conflict with what exists, or between parts of a request.
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

${more}
[parameters]
# A stream of live calls ends at once.
"query.seconds" = 0
${names.map((name) => `"path.${name}" = { dictionary = "${name}", probability = ${share(name)} }`).join('\n')}
${bodies.map(([member, name]) => `"body.${member}" = { dictionary = "${name}", probability = ${share(member)} }`).join('\n')}

[dictionaries]
${names.map((name) => `${name} = { values = [${text(ids[name])}] }`).join('\n')}
`
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Runs a program to its end. @returns what it printed. */
function printed(
  program: string,
  parameters: string[],
  cwd: string,
  environment: Record<string, string>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, parameters, {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
    }
    // The local system is stopped after it.
    const stop = () => child.kill('SIGTERM')
    for (const signal of SIGNALS) process.on(signal, stop)
    child.once('error', reject)
    child.once('close', () => {
      for (const signal of SIGNALS) process.off(signal, stop)
      resolve(text)
    })
  })
}

/** The parts of schemathesis' report that are read. */
interface Report {
  running_time: number
  complete: boolean
  operations: { total: number; tested: number } | null
  test_cases: { generated: number }
  failures: Array<{ title: string; count: number; operations: string[] }>
  errors: Array<{ title: string; count: number }>
}

function resultOf(report: Report, explained: number[], log: string): ContractResult {
  const cutOff = report.complete ? [] : [{ title: 'the run did not end', count: 1 }]
  return {
    operations: report.operations?.total ?? 0,
    tested: report.operations?.tested ?? 0,
    cases: report.test_cases.generated,
    failures: report.failures,
    errors: [...report.errors, ...cutOff],
    explained,
    seconds: report.running_time,
    log,
  }
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))
