import type { StandInCommand } from './children.ts'

/** The stand-ins to start, with their options. A service that is left out has a real counterpart. */
export interface StackPlan {
  /**
   * `folder`: of embedded Postgres' data, or `memory`; `template`: a file of `packDatabase` with which memory begins;
   * `isBrief`: it runs for seconds only; `url`: of a real PostgreSQL, in place of the embedded one.
   */
  postgres?: { folder: string } | { template: string; isBrief: boolean } | { url: string }
  /** `file`: stores the data over restarts; without it they are in memory only. */
  redis?: { token: string; file?: string }
  qstash?: { token: string; currentSigningKey: string; nextSigningKey: string; file?: string }
  modelUpstream?: { record: boolean }
  /**
   * `folder`: of the R2 bucket's objects. R2 has no real counterpart outside Cloudflare, so this stand-in always runs.
   */
  contentStore: { folder: string }
  /** Whether tests may move the clocks of the stand-ins. */
  control: boolean
}

export type StandInName = 'postgres' | 'redis' | 'qstash' | 'modelUpstream' | 'contentStore'

/** Ports on 127.0.0.1, chosen before anything starts, so that all of it can start at once. */
export type StackPorts = Record<StandInName, number>

/** URLs of what a plan starts, `http://127.0.0.1:<port>`; null for what it leaves out. */
export type StackUrls = Record<StandInName, string | null> & { contentStore: string }

/** Addresses of a plan's stand-ins, known before they run. */
export function stackUrls(plan: StackPlan, ports: StackPorts): StackUrls {
  const url = (name: StandInName) => (plan[name] === undefined ? null : `http://127.0.0.1:${ports[name]}`)
  return {
    postgres: url('postgres'),
    redis: url('redis'),
    qstash: url('qstash'),
    modelUpstream: url('modelUpstream'),
    contentStore: `http://127.0.0.1:${ports.contentStore}`,
  }
}

/** How to start each stand-in of a plan, for `Children.startStandIn`. */
export function stackCommands(
  plan: StackPlan,
  ports: StackPorts,
): Partial<Record<StandInName, StandInCommand>> {
  const control = plan.control ? ['--control'] : []
  const { postgres, redis, qstash, modelUpstream, contentStore } = plan
  return {
    ...(postgres && {
      postgres: { name: 'postgres', port: ports.postgres, ...postgresStart(postgres) },
    }),
    ...(redis && {
      redis: {
        name: 'redis',
        port: ports.redis,
        arguments: [...fileArguments(redis.file), ...control],
        environment: { LOCAL_REDIS_TOKEN: redis.token },
      },
    }),
    ...(qstash && {
      qstash: {
        name: 'qstash',
        port: ports.qstash,
        arguments: [...fileArguments(qstash.file), ...control],
        environment: qstashEnvironment(qstash),
      },
    }),
    ...(modelUpstream && {
      modelUpstream: {
        name: 'model-upstream',
        port: ports.modelUpstream,
        arguments: modelUpstream.record ? [] : ['--no-record'],
      },
    }),
    contentStore: {
      name: 'content-store',
      port: ports.contentStore,
      arguments: ['--data', contentStore.folder],
    },
  }
}

function postgresStart(plan: NonNullable<StackPlan['postgres']>) {
  if ('template' in plan) {
    const parameters = ['--data', 'memory', '--template', plan.template]
    // Within seconds, V8 takes longer to optimize the database's code than it saves.
    return { arguments: parameters, ...(plan.isBrief && { nodeOptions: ['--liftoff-only'] }) }
  }
  if ('folder' in plan) return { arguments: ['--data', plan.folder] }
  return { arguments: [], environment: { REAL_DATABASE_URL: plan.url } }
}

const fileArguments = (file: string | undefined): string[] => (file === undefined ? [] : ['--data', file])

/** Secrets go by environment: a command line can be read by every process. */
function qstashEnvironment(plan: NonNullable<StackPlan['qstash']>): Record<string, string> {
  return {
    QSTASH_TOKEN: plan.token,
    QSTASH_CURRENT_SIGNING_KEY: plan.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: plan.nextSigningKey,
  }
}
