import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Backoff } from '../node/backoff.ts'
import { getText } from '../node/get-text.ts'
import { freePorts } from '../node/ports.ts'
import { startSchedule } from '../node/schedule.ts'
import { StartError } from '../node/start-error.ts'
import type { RunningTools } from '../node/tools-script.ts'
import { type RunningWorkerd, startWorkerd } from '../node/workerd.ts'
import { readCrons, readRuntimeSettings } from '../node/wrangler-settings.ts'
import { BUNDLE_FOLDER, GATEWAY_CONFIGURATION } from './bundle.ts'
import { DATA } from './data-folder.ts'
import type { Closed } from './edge.ts'
import { gatewayVariables, newTokens } from './gateway-variables.ts'
import { untilResponsesEnd } from './live-responses.ts'
import { type Log, logOutput } from './log.ts'
import { ManagedChild } from './managed-child.ts'
import type { ServicePorts } from './services-process.ts'
import type { NodeSettings } from './settings.ts'
import { startToolsOf } from './tools.ts'

/** Beyond the time that a process is asked to wait. */
const ASK_MARGIN_MS = 2_000
const READY_LIMIT_MS = 30_000
const READY_INTERVAL_MS = 200
/** Beyond the interval in which ledgers write their records. */
const FLUSH_MARGIN_MS = 500

/**
 * The processes of a node: the front door, the services behind the gateway, the gateway, and the script of tools. Each that ends by
 * itself is started again.
 */
export class GatewayNode {
  readonly #settings: NodeSettings
  readonly #log: Log
  readonly #countLive: () => Promise<number>
  readonly #run: string
  readonly #tokens = newTokens()
  readonly #edge: ManagedChild<{ port: number }>
  readonly #services: ManagedChild<ServicePorts>
  readonly #backoff = new Backoff()
  #gatewayPort = 0
  #ports: ServicePorts = { postgres: 0, redis: 0, queue: 0 }
  #gateway: RunningWorkerd | null = null
  #tools: RunningTools | null = null
  #endSchedule = (): void => {}
  #closed: Closed = 'starting'
  /** Serializes pause, resume and stop. */
  #work: Promise<unknown> = Promise.resolve()

  /**
   * @param countLive how many responses are in progress, with or without a reader. While new ones are refused, their number only
   * falls.
   */
  constructor(settings: NodeSettings, log: Log, countLive: () => Promise<number>) {
    this.#settings = settings
    this.#log = log
    this.#countLive = countLive
    this.#run = join(settings.dataFolder, DATA.run)
    this.#edge = new ManagedChild({
      name: 'edge',
      log,
      settings: (last) => ({
        host: settings.host,
        port: last?.port ?? settings.port,
        gatewayPort: this.#gatewayPort,
        trustedProxies: settings.trustedProxies,
      }),
      onReady: () => void this.#setClosed(this.#closed),
    })
    this.#services = new ManagedChild({
      name: 'services',
      log,
      settings: (last) => this.#servicesSettings(last),
      onReady: (ports) => {
        this.#ports = ports
        if (this.#closed === null) void this.#askServices({ resume: true })
      },
    })
  }

  /**
   * Listens, and refuses requests until `open`.
   * @returns the port. @throws StartError
   */
  async listen(): Promise<number> {
    rmSync(this.#run, { recursive: true, force: true })
    mkdirSync(this.#run, { recursive: true, mode: 0o700 })
    ;[this.#gatewayPort = 0] = await freePorts(1)
    return (await this.#edge.start()).port
  }

  /** Starts everything behind the front door, and lets requests through. @throws StartError */
  open(): Promise<void> {
    return this.#next(async () => {
      await this.#services.start()
      await this.#startWorkers()
    })
  }

  /** Process ids by name, for the log. */
  pids(): Record<string, number> {
    const pids = {
      edge: this.#edge.pid,
      services: this.#services.pid,
      gateway: this.#gateway?.pid,
      tools: this.#tools?.pid,
    }
    return Object.fromEntries(Object.entries(pids).flatMap(([name, pid]) => (pid ? [[name, pid]] : [])))
  }

  /**
   * Refuses new requests, waits for those under way, and ends what writes.
   * @param limitMs milliseconds after which they are cut. @throws StartError unless the node is open
   */
  pause(limitMs: number): Promise<void> {
    if (this.#closed !== null) return Promise.reject(new StartError(`it is ${this.#closed}`))
    return this.#next(() => this.#drain('maintenance', limitMs))
  }

  /** Continues after `pause`. */
  resume(): Promise<void> {
    return this.#next(async () => {
      if (this.#closed === 'maintenance') await this.#startWorkers()
    })
  }

  /** Ends the node. @param limitMs milliseconds after which requests under way are cut */
  stop(limitMs: number): Promise<void> {
    return this.#next(async () => {
      if (this.#closed !== 'maintenance') await this.#drain('stopping', limitMs)
      await this.#setClosed('stopping')
      await this.#services.stop()
      await this.#edge.stop()
      rmSync(this.#run, { recursive: true, force: true })
    })
  }

  /** Ends the processes without waiting for anything. */
  async abort(): Promise<void> {
    this.#endSchedule()
    const ends = [this.#gateway?.stop(), this.#tools?.stop(), this.#services.stop(0), this.#edge.stop(0)]
    await Promise.allSettled(ends)
  }

  #next<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#work.then(step)
    this.#work = result.catch(() => {})
    return result
  }

  #socket(name: string): string {
    return join(this.#run, `${name}.sock`)
  }

  async #startWorkers(): Promise<void> {
    const [tools, gateway] = await Promise.allSettled([this.#startTools(), this.#startGateway()])
    for (const started of [tools, gateway]) if (started.status === 'rejected') throw started.reason
    await this.#untilReady()
    this.#endSchedule = this.#startSchedule()
    await this.#setClosed(null)
    await this.#askServices({ resume: true })
  }

  async #drain(reason: NonNullable<Closed>, limitMs: number): Promise<void> {
    const end = performance.now() + limitMs
    this.#endSchedule()
    await this.#setClosed(reason)
    const [cut] = await Promise.all([
      this.#edge.ask({ drainMs: limitMs }, limitMs + ASK_MARGIN_MS).catch(() => 0),
      this.#askServices({ pauseMs: limitMs }, limitMs + ASK_MARGIN_MS),
    ])
    await untilResponsesEnd(this.#countLive, end, this.#log)
    if (typeof cut === 'number' && cut > 0) this.#log('warn', 'requests_cut', { requests: cut })
    // What the last calls recorded reaches Postgres; anything later waits in the ledgers.
    await wait(Number(this.#settings.variables.LEDGER_FLUSH_MS ?? 1_000) + FLUSH_MARGIN_MS)
    const gateway = this.#gateway
    const tools = this.#tools
    this.#gateway = null
    this.#tools = null
    await Promise.all([gateway?.stop(), tools?.stop()])
  }

  async #setClosed(closed: Closed): Promise<void> {
    this.#closed = closed
    await this.#edge.ask({ closed }).catch(() => {})
  }

  /** A process that is being started again learns the state when it is ready. */
  async #askServices(message: Record<string, unknown>, limitMs?: number): Promise<void> {
    await this.#services.ask(message, limitMs).catch(() => {})
  }

  #servicesSettings(last: ServicePorts | null): Record<string, unknown> {
    const { database, poolSize, redisUrl, content, baseUrl, dataFolder } = this.#settings
    const { currentSigningKey, nextSigningKey, queue, redis, sqlPassword } = this.#tokens
    return {
      ports: last ?? this.#ports,
      database: { ...database, max: poolSize },
      sqlPassword,
      redisUrl,
      redisToken: redis,
      queue: { token: queue, currentSigningKey, nextSigningKey, file: join(dataFolder, DATA.queue) },
      origin: new URL(baseUrl).origin,
      gatewayPort: this.#gatewayPort,
      content,
      contentSocket: this.#socket('content'),
    }
  }

  async #startGateway(): Promise<void> {
    const gateway = await startWorkerd({
      ...readRuntimeSettings(GATEWAY_CONFIGURATION),
      bundleDirectory: BUNDLE_FOLDER,
      folder: join(this.#run, 'gateway'),
      port: this.#gatewayPort,
      socketFolder: this.#run,
      bindings: gatewayVariables(this.#settings, this.#ports, this.#tokens),
      storageDirectory: join(this.#settings.dataFolder, DATA.objects),
      buckets: { CONTENT: `unix:${this.#socket('content')}` },
      services: { TOOLS: this.#toolsUrl() },
      scheduled: true,
      onLine: (line) => logOutput('gateway', line),
      onCrash: () => void this.#restartGateway(),
    })
    this.#gateway = gateway
  }

  #toolsUrl(): string {
    const { toolsAddress } = this.#settings
    return toolsAddress === null ? `unix:${this.#socket('tools')}` : `http://${toolsAddress}`
  }

  async #startTools(): Promise<void> {
    if (this.#settings.toolsAddress !== null) return
    this.#tools = await startToolsOf({
      dataFolder: this.#settings.dataFolder,
      address: `unix:${this.#socket('tools')}`,
      memoryLimitBytes: this.#settings.toolsMemoryBytes,
      log: this.#log,
    })
  }

  async #restartGateway(): Promise<void> {
    const gateway = this.#gateway
    if (gateway === null) return
    this.#log('error', 'process_ended', { process: 'gateway' })
    while (this.#gateway === gateway) {
      await wait(this.#backoff.next(performance.now()))
      if (this.#gateway !== gateway) return
      try {
        await gateway.restart()
        this.#log('info', 'process_started_again', { process: 'gateway' })
        return
      } catch (error) {
        if (this.#gateway !== gateway) return
        this.#log('error', 'process_not_started', { process: 'gateway', reason: (error as Error).message })
      }
    }
  }

  /** A service that is away when the node starts is reported and waited for; the gateway then serves what it can. */
  async #untilReady(): Promise<void> {
    const end = performance.now() + READY_LIMIT_MS
    for (;;) {
      const answer = await getText({ port: this.#gatewayPort, host: '127.0.0.1' }, '/health/ready').catch(
        () => null,
      )
      if (answer?.status === 200) return
      if (performance.now() > end) {
        if (answer?.status !== 503)
          throw new StartError(`the gateway does not start (${answer?.status ?? 'no answer'})`)
        this.#log('warn', 'not_ready', { failed: (JSON.parse(answer.body) as { failed: string[] }).failed })
        return
      }
      await wait(READY_INTERVAL_MS)
    }
  }

  /** Triggers of wrangler.toml; the frequent ones at once, so that what a stop interrupted goes on. */
  #startSchedule(): () => void {
    const crons = readCrons(GATEWAY_CONFIGURATION)
    return startSchedule(crons, {
      run: async (cron) => this.#gateway?.runScheduled(cron),
      report: (reason) => this.#log('error', 'trigger_failed', { reason }),
      atOnce: crons.filter((cron) => cron.startsWith('*/')),
    })
  }
}
