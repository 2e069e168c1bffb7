import { expect } from 'vitest'
import { startPostgres } from '../../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../../scripts/node/loopback-server.ts'
import type { CloudDeployment, DeployOutput } from '../../harness/cloud/cloud-deployment.ts'
import type { StoredScript } from '../../harness/cloud/cloudflare-state.ts'
import { migratedDatabase } from '../../harness/migrated-database.ts'
import { accountWithoutDatabase, emptyAccount, sqlOf } from './cloud-account.ts'

/** An account to deploy to again and again, with a database that outlives it. */
export class DeployedAccount {
  readonly #postgres: RunningServer
  #deployment: CloudDeployment | undefined
  /** Number in the text of the scripts. */
  release = 1

  private constructor(postgres: RunningServer) {
    this.#postgres = postgres
  }

  static async start(): Promise<DeployedAccount> {
    return new DeployedAccount(await startPostgres({ template: await migratedDatabase() }))
  }

  async stop(): Promise<void> {
    await this.#postgres.close()
  }

  get postgresUrl(): string {
    return this.#postgres.url
  }

  get deployment(): CloudDeployment {
    if (this.#deployment === undefined) throw new Error('there is no account')
    return this.#deployment
  }

  readonly sql = (...statements: string[]) => sqlOf(this.#postgres.url, ...statements)

  /** An account that has a database with its schema only. */
  readonly beginEmpty = async (): Promise<void> => {
    this.release = 1
    this.#deployment = await emptyAccount(this.#postgres.url)
  }

  /** An account without anything. */
  readonly beginWithoutDatabase = async (): Promise<void> => {
    this.release = 1
    this.#deployment = await accountWithoutDatabase(this.#postgres.url)
  }

  /** An account with a deployment, and changed scripts to deploy. */
  readonly beginDeployed = async (): Promise<void> => {
    await this.beginEmpty()
    expect(await this.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    this.changeScripts()
  }

  readonly end = (): Promise<void> => this.deployment.stop()

  readonly changeScripts = (): void => {
    this.release += 1
    this.deployment.writeScripts(String(this.release))
  }

  readonly gatewayScript = (): StoredScript => {
    const script = this.deployment.cloud.cloudflare.scripts.get('headgate')
    if (script === undefined) throw new Error('there is no gateway')
    return script
  }

  /** Texts of the versions that have traffic, with their shares. */
  readonly serving = (name = 'headgate'): string[] => {
    const { cloudflare } = this.deployment.cloud
    const script = cloudflare.scripts.get(name)
    const shares = script === undefined ? [] : cloudflare.shares(script)
    return shares.map(({ version, percentage }) => `${/\d+$/m.exec(version.code)?.[0]} at ${percentage}`)
  }

  /** Lets the time of the lease pass. */
  readonly endLease = (): Promise<void> =>
    this.sql("update headgate_deployment.leases set expires_at = now() - interval '1 second'")

  /** Gives the lease of a deployment that runs to another one. */
  readonly loseLease = (): Promise<void> =>
    this.sql("update headgate_deployment.leases set holder = 'another', expires_at = now() + interval '9 s'")

  /** Takes the network away at a change: before it has its effect, or before its answer. */
  readonly cutAt = (index: number, kind: 'before' | 'after'): void => {
    const { cloud } = this.deployment
    let changes = -1
    cloud.onRequest = ({ isChange }) => {
      if (changes === index) cloud.isAway = true
      if (isChange) changes += 1
      if (changes !== index || cloud.isAway) return
      if (kind === 'before') cloud.isAway = true
      else cloud.faults.push({ matches: /./, kind: 'cut after', times: 1 })
    }
  }

  /** Gives the network back. */
  readonly heal = (): void => {
    const { cloud } = this.deployment
    cloud.onRequest = () => {}
    cloud.isAway = false
    cloud.faults.length = 0
  }

  /** After a cut: the next run completes, and the one after it has nothing to do. */
  readonly expectContinued = async (broken: DeployOutput, parameters: string[] = []): Promise<void> => {
    const { deployment } = this
    expect(broken.code, broken.stdout).toBe(1)
    expect(broken.stderr).toMatch(/^deploy: /)
    this.heal()
    const continued = await deployment.run(['--yes', ...parameters])
    expect(continued, `after ${broken.stderr}`).toMatchObject({ code: 0, stderr: '' })
    expect((await deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
    expect(deployment.leaks(broken, continued)).toEqual([])
  }
}

/** Each change of a deployment, with both sides at which it can be cut. @param changes how many it makes */
export const cutsOf = (changes: number) =>
  [...Array(changes).keys()].flatMap((index) => [
    [index, 'before' as const] as const,
    [index, 'after' as const] as const,
  ])
