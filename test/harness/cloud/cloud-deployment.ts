import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runDeploy } from '../../../scripts/deploy/run-deploy.ts'
import { Cloud } from './cloud.ts'
import { ACCOUNT } from './cloudflare-routes.ts'
import { MovingClock } from './moving-clock.ts'

/** What one run of `npm run deploy` did. */
export interface DeployOutput {
  code: number
  stdout: string
  stderr: string
}

/** Canaries: values that must appear in no output, argument, request path or file. */
export const CANARIES = {
  DATABASE_URL: (port: string) => `postgres://headgate:canary-database-password@127.0.0.1:${port}/headgate`,
  QSTASH_TOKEN: 'canary-qstash-token-0123456789',
}

const codeOf = (name: string, release: string): string =>
  `// ${name} ${release}\nexport default { fetch: () => new Response('${release}') }\n`

/** Deployments against stand-ins of the clouds, by the wrangler of node_modules. */
export class CloudDeployment {
  readonly cloud: Cloud
  /** Settings, secrets and the files of deployments. */
  readonly folder = mkdtempSync(join(tmpdir(), 'headgate-deploy-'))
  bundle = join(this.folder, 'scripts')
  /** More variables of the environment. */
  variables: Record<string, string> = {}
  readonly clock = new MovingClock()
  /** Interrupts the run, as SIGTERM does. */
  interruption = new AbortController()
  /** Command lines and environments of the processes that this one started, as the system shows them to others. */
  readonly seenProcesses = new Set<string>()
  readonly #postgres: string

  /** @param postgres address of the Postgres stand-in */
  constructor(postgres: string) {
    this.#postgres = postgres
    this.cloud = new Cloud(CANARIES.DATABASE_URL(new URL(postgres).port))
    this.writeScripts('1')
  }

  async start(settings: Record<string, unknown> = {}): Promise<void> {
    await this.cloud.start()
    this.cloud.onRequest = () => this.#seeProcesses()
    this.writeSettings(settings)
  }

  async stop(): Promise<void> {
    await this.cloud.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Small scripts in place of the built ones, which take seconds. @param release a text that makes their tags differ */
  writeScripts(release: string): void {
    this.writeTools(release)
    writeFileSync(join(this.bundle, 'gateway.js'), codeOf('gateway', release))
  }

  /** The script of tools alone: the gateway keeps its tag. */
  writeTools(release: string): void {
    mkdirSync(join(this.bundle, 'tools'), { recursive: true })
    writeFileSync(join(this.bundle, 'tools/tools.js'), codeOf('tools', release))
  }

  writeSettings(members: Record<string, unknown> = {}): void {
    const settings = {
      stage: 'test-stage',
      account: ACCOUNT,
      gateway: { hosts: ['gateway.example.com'] },
      database: { neon: { project: 'headgate', region: 'aws-eu-central-1' } },
      redis: { upstash: { database: 'headgate', region: 'eu-central-1' } },
      smokeTest: { url: this.cloud.gateway.url },
      ...members,
    }
    writeFileSync(this.settingsFile, JSON.stringify(settings))
  }

  get settingsFile(): string {
    return join(this.folder, 'deploy.json')
  }

  get secretsFile(): string {
    return join(this.folder, 'deploy/test-stage/secrets.json')
  }

  get environment(): Record<string, string> {
    return {
      ...this.cloud.environment,
      HEADGATE_FOLDER: this.folder,
      DATABASE_FETCH_ENDPOINT: `${this.#postgres}/sql`,
      QSTASH_TOKEN: CANARIES.QSTASH_TOKEN,
      ...this.variables,
    }
  }

  /** Runs `npm run deploy` in this process. @param answer what a person answers; undefined without a terminal */
  async run(parameters: string[] = ['--yes'], answer?: string): Promise<DeployOutput> {
    const output = { stdout: '', stderr: '' }
    const code = await runDeploy(['--config', this.settingsFile, ...parameters], {
      environment: this.environment,
      fetch,
      clock: this.clock,
      print: (line) => {
        output.stdout += `${line}\n`
      },
      printError: (line) => {
        output.stderr += `${line}\n`
      },
      ...(answer !== undefined && { prompt: async () => answer }),
      signal: this.interruption.signal,
      bundle: this.bundle,
    })
    return { code, ...output }
  }

  #seeProcesses(): void {
    if (process.platform !== 'linux') return
    for (const pid of readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')) {
      for (const name of ['cmdline', 'environ']) {
        try {
          this.seenProcesses.add(`${name} ${readFileSync(`/proc/${pid}/${name}`, 'utf8')}`)
        } catch {
          // It has ended.
        }
      }
    }
  }

  /** The texts in which a secret appears, of output, files, and processes. The file of secrets is none of them. */
  leaks(...outputs: DeployOutput[]): string[] {
    const { CLOUDFLARE_API_TOKEN } = this.environment
    const texts = [
      ...outputs.flatMap(({ stdout, stderr }) => [
        { place: 'stdout', text: stdout },
        { place: 'stderr', text: stderr },
      ]),
      ...this.files.map(({ path, text }) => ({ place: path, text })),
      ...[...this.seenProcesses].map((text) => ({ place: text.split(' ', 1)[0] ?? '', text })),
    ]
    return this.secrets.flatMap((secret) =>
      texts
        .filter(({ text }) => text.includes(secret))
        // wrangler takes its token from the environment.
        .filter(({ place }) => place !== 'environ' || secret !== CLOUDFLARE_API_TOKEN)
        .map(({ place }) => `${secret.slice(0, 12)}… in ${place}`),
    )
  }

  /** Every secret that a run knows: canaries, what was generated, and what the stand-ins made. */
  private get secrets(): string[] {
    const generated = Object.values(
      JSON.parse(readFileSync(this.secretsFile, 'utf8')) as Record<string, string>,
    )
    const redis = this.cloud.upstash.databases.map(({ rest_token }) => rest_token)
    const { CLOUDFLARE_API_TOKEN = '', NEON_API_KEY = '', UPSTASH_API_KEY = '' } = this.environment
    const tokens = [CLOUDFLARE_API_TOKEN, NEON_API_KEY, UPSTASH_API_KEY]
    return [...generated, ...redis, ...tokens, 'canary-database-password', CANARIES.QSTASH_TOKEN]
  }

  /** The files of this deployment with their texts, without the one of secrets. */
  private get files(): Array<{ path: string; text: string }> {
    return readdirSync(this.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => path !== this.secretsFile)
      .map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  }
}
