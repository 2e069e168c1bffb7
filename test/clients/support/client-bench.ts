import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gateway } from '../../harness/gateway.ts'
import { createTenant, type Tenant, type TenantOptions } from '../../harness/tenant.ts'
import { type RecordingProxy, startRecordingProxy } from './recording-proxy.ts'

/** Setting of one run of a client: its own organization, home, working folder and proxy to the gateway. */
export interface Bench {
  tenant: Tenant
  proxy: RecordingProxy
  /** The working folder; the home is another. */
  folder: string
  /** Environment that holds no setting of this machine's user and leads everywhere but to the gateway into a refusal. */
  environment: Record<string, string>
  clear(): Promise<void>
}

export async function setUpBench(options: TenantOptions = {}): Promise<Bench> {
  const address = gateway()
  const [tenant, proxy] = await Promise.all([
    createTenant(address, options),
    startRecordingProxy(address.baseUrl),
  ])
  const root = mkdtempSync(join(tmpdir(), 'headgate-client-'))
  const [home, folder] = [join(root, 'home'), join(root, 'work')]
  for (const path of [home, folder]) mkdirSync(path)
  return {
    tenant,
    proxy,
    folder,
    environment: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      TMPDIR: root,
      HTTP_PROXY: proxy.url,
      HTTPS_PROXY: proxy.url,
      NO_PROXY: '127.0.0.1,localhost',
    },
    clear: async () => {
      await proxy.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}
