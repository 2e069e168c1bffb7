import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { firstError } from '../build.ts'
import { wranglerArguments, wranglerEnvironment } from '../local/wrangler-command.ts'
import { inheritedEnvironment } from '../node/inherited-environment.ts'
import { writePrivateFile } from '../node/private-file.ts'
import { cloudflarePermission } from './cloudflare-api.ts'
import { type MachineClock, refuseInterrupted } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'
import type { ScriptRelease } from './release.ts'
import type { SecretValues } from './secrets.ts'

export interface WranglerOptions {
  /** Private folder of this deployment. */
  folder: string
  account: string
  token: string
  /** Of Cloudflare's API, where it is another one. */
  baseUrl: string | undefined
  clock: MachineClock
  secrets: SecretValues
  /** Ends the running command, unless it is a rollback. */
  signal: AbortSignal
}

/** How often a command is started that Cloudflare refuses with 429. */
const MOST_STARTS = 4
const LONGEST_WAIT_SECONDS = 120
const DEFAULT_WAIT_SECONDS = 30
const SECRETS_PREFIX = 'upload-'

/** Cloudflare's codes for a token without the permission. */
const FORBIDDEN = /\[code: (10000|9109|10405)\]/
/** Codes and texts of a refusal by rate. wrangler shows no status. */
const LIMITED = /"Retry-After" header|\[code: (971|10429)\]|rate limit|too many requests/i

/** Changes a Cloudflare account, by the wrangler of node_modules. */
export class Wrangler {
  readonly #options: WranglerOptions

  constructor(options: WranglerOptions) {
    this.#options = options
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
    // A run that was killed may have left its file.
    for (const name of readdirSync(options.folder)) {
      if (name.startsWith(SECRETS_PREFIX)) rmSync(join(options.folder, name))
    }
  }

  async createBucket(name: string): Promise<void> {
    await this.#run(['r2', 'bucket', 'create', name], this.#options.folder, this.#options.signal)
  }

  /** Deploys a script, with its triggers, to all traffic. @returns the id of the new version */
  async deploy(release: ScriptRelease, secrets: readonly string[] = []): Promise<string> {
    return this.#upload(['deploy'], release, secrets)
  }

  /** Uploads a version that gets no traffic. @returns its id */
  async uploadVersion(release: ScriptRelease, secrets: readonly string[]): Promise<string> {
    return this.#upload(['versions', 'upload'], release, secrets)
  }

  /** Divides the traffic of a script. @param shares percent by version, 100 together */
  async divideTraffic(
    release: ScriptRelease,
    shares: ReadonlyArray<[version: string, percent: number]>,
  ): Promise<void> {
    const specifications = shares.map(([version, percent]) => `${version}@${percent}%`)
    await this.#runWith(release, ['versions', 'deploy', ...specifications, '--yes'])
  }

  /** Gives all traffic to a version that was deployed before. No signal ends it: a version that failed would keep its traffic. */
  async rollBack(release: ScriptRelease, version: string): Promise<void> {
    const parameters = ['rollback', version, '--yes', '--message', 'headgate: the smoke test failed']
    await this.#runWith(release, parameters, { signal: new AbortController().signal, ownGroup: true })
  }

  async deployTriggers(release: ScriptRelease): Promise<void> {
    await this.#runWith(release, ['triggers', 'deploy'])
  }

  /** Secrets go by a file of mode 0600 that is removed again, whatever happens. */
  async #upload(command: string[], release: ScriptRelease, secrets: readonly string[]): Promise<string> {
    const parameters = [...command, '--tag', release.tag, '--message', `headgate ${release.tag}`]
    const file = join(this.#options.folder, `${SECRETS_PREFIX}${randomUUID()}.json`)
    try {
      if (secrets.length > 0) {
        writePrivateFile(file, JSON.stringify(this.#valuesOf(secrets)))
        parameters.push('--secrets-file', file)
      }
      const id = (await this.#runWith(release, parameters)).find(
        (entry) => typeof entry.version_id === 'string',
      )
      if (id === undefined) throw new DeployError(`wrangler ${command.join(' ')} reported no version`)
      return String(id.version_id)
    } finally {
      rmSync(file, { force: true })
    }
  }

  #valuesOf(names: readonly string[]): Record<string, string> {
    return Object.fromEntries(
      names.map((name) => {
        const value = this.#options.secrets.get(name)
        if (value === undefined) throw new DeployError(`${name} has no value`)
        return [name, value]
      }),
    )
  }

  #runWith(
    release: ScriptRelease,
    parameters: string[],
    { signal, ownGroup }: { signal: AbortSignal; ownGroup?: boolean } = this.#options,
  ): Promise<Array<Record<string, unknown>>> {
    const folder = dirname(release.entry)
    const configuration = join(folder, 'wrangler.json')
    writeFileSync(configuration, JSON.stringify(release.configuration))
    return this.#run([...parameters, '--config', configuration], folder, signal, ownGroup)
  }

  /** Runs a command. @returns what it wrote for programs @throws DeployError with its first error, without secrets */
  async #run(
    parameters: string[],
    folder: string,
    signal: AbortSignal,
    ownGroup = false,
  ): Promise<Array<Record<string, unknown>>> {
    for (let start = 1; ; start++) {
      refuseInterrupted(signal)
      const report = join(this.#options.folder, `wrangler-${randomUUID()}.ndjson`)
      try {
        const { code, text } = await this.#start(parameters, { folder, report, signal, ownGroup })
        if (code === 0) return readReport(report)
        refuseInterrupted(signal)
        const wait = waitOf(text)
        if (wait === null || start === MOST_STARTS || wait > LONGEST_WAIT_SECONDS) {
          throw new DeployError(this.#options.secrets.redact(failureOf(parameters, text)))
        }
        await this.#options.clock.sleep(wait * 1000, signal)
      } finally {
        rmSync(report, { force: true })
      }
    }
  }

  #start(
    parameters: string[],
    options: { folder: string; report: string; signal: AbortSignal; ownGroup: boolean },
  ): Promise<{ code: number | null; text: string }> {
    const { folder, report, signal, ownGroup } = options
    const { token, account, baseUrl } = this.#options
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, wranglerArguments(parameters), {
        cwd: folder,
        env: {
          ...inheritedEnvironment(),
          ...wranglerEnvironment(this.#options.folder),
          CLOUDFLARE_API_TOKEN: token,
          CLOUDFLARE_ACCOUNT_ID: account,
          ...(baseUrl !== undefined && { CLOUDFLARE_API_BASE_URL: baseUrl }),
          WRANGLER_OUTPUT_FILE_PATH: report,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        // A terminal sends SIGINT to every process of its group.
        detached: ownGroup,
      })
      let text = ''
      const collect = (chunk: Buffer): void => {
        text = (text + chunk.toString()).slice(-100_000)
      }
      const stop = (): void => void child.kill()
      signal.addEventListener('abort', stop)
      child.stdout.on('data', collect)
      child.stderr.on('data', collect)
      child.once('error', reject)
      child.once('close', (code) => {
        signal.removeEventListener('abort', stop)
        resolve({ code, text })
      })
    })
  }
}

/** Seconds to wait before a refused command starts again; null if it was not refused by rate. */
function waitOf(text: string): number | null {
  if (!LIMITED.test(text)) return null
  const named = /you should wait (\d+) second/.exec(text)?.[1]
  return named === undefined ? DEFAULT_WAIT_SECONDS : Number(named)
}

function failureOf(parameters: string[], text: string): string {
  const command = `wrangler ${parameters.slice(0, 2).join(' ').replace(/ --.*/, '')}`
  const path = /A request to the Cloudflare API \(([^)]+)\) failed/.exec(text)?.[1]
  const details = text.match(/^\s*(?:- )?.*\[code: \d+\].*$/m)?.[0]?.trim()
  if (FORBIDDEN.test(text)) {
    const permission = cloudflarePermission('', path ?? '/workers/')
    return `${command}: the token of Cloudflare lacks the permission "${permission}"`
  }
  return `${command} failed: ${firstError(text)}${details === undefined ? '' : ` ${details}`}`
}

function readReport(file: string): Array<Record<string, unknown>> {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}
