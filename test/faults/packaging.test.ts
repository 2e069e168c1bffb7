import { chmodSync, chownSync, cpSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import {
  folderForRoots,
  missingForRoots,
  ownedFolder,
  type PackagedRoot,
  spawnInRoot,
} from '../harness/packaged-root.ts'
import {
  type ComposeService,
  foldersOf,
  mountsOf,
  readCompose,
  readImage,
  readUnit,
} from '../harness/packaging.ts'
import { createDatabase, freePort, nodeSecrets, type ServedNode, servedNode } from '../harness/serve-node.ts'
import {
  missingServers,
  type RealServer,
  startRealPostgres,
  startRealRedis,
  tellSkipped,
} from '../local/real-servers.ts'

const missing = [...missingServers(), ...[missingForRoots() ?? []].flat()]
if (missing.length > 0) tellSkipped('starts as containers and units start', missing.join(' and no '))

const ROOT = join(import.meta.dirname, '../..')
/** The user `node` of the image, by its number. */
const NODE_USER = 1_000
const UNIT_USERS: Record<string, number> = { headgate: 64_201, 'headgate-tools': 64_202 }

describe.skipIf(missing.length > 0)('a read-only root and another user', () => {
  const cleanUps: Array<() => unknown> = []
  const started: ServedNode[] = []
  const image = readImage()
  let postgres: RealServer
  let redis: RealServer
  let folder: string
  let bundle: string

  beforeAll(async () => {
    const roots = folderForRoots()
    folder = roots.path
    cleanUps.push(roots.remove)
    ;[postgres, redis] = await Promise.all([startRealPostgres(), startRealRedis()])
    cleanUps.push(postgres.stop, redis.stop)
    bundle = join(folder, 'dist')
    cpSync(inject('bundleDirectory'), bundle, { recursive: true })
    chmodSync(bundle, 0o755)
  })
  afterAll(async () => {
    for (const { process: child } of started) if (child.exitCode === null) child.kill('SIGKILL')
    for (const cleanUp of cleanUps.reverse()) await cleanUp()
  })

  /** The files that the image has, below a folder. */
  const filesAt = (place: string) =>
    Object.fromEntries(
      image.files.map((path) => [`${place}/${path}`, path === 'dist' ? bundle : join(ROOT, path)]),
    )

  function start(
    root: PackagedRoot,
    command: readonly string[],
    environment: Record<string, string>,
  ): ServedNode {
    const child = spawnInRoot(root, command, environment, join(folder, `root-${started.length}`))
    const node = servedNode(child)
    started.push(node)
    return node
  }

  /** What stands for the servers of the file, and ports of their own for processes that share the machine's. */
  async function outside() {
    const [port, toolsPort] = [String(await freePort()), String(await freePort())]
    return {
      ...nodeSecrets(),
      DATABASE_URL: await createDatabase(postgres.url),
      REDIS_URL: redis.url,
      PORT: port,
      TOOLS_PORT: toolsPort,
      TOOLS_URL: `http://127.0.0.1:${toolsPort}`,
      BASE_URL: 'https://gateway.invalid',
      STOP_TIMEOUT: '2',
      TRUSTED_PROXIES: '',
    }
  }

  async function expectServes(node: ServedNode): Promise<void> {
    const { port } = await node.ready()
    const health = await fetch(`http://127.0.0.1:${port}/health/ready`)
    expect([health.status, await health.text()]).toEqual([200, expect.stringContaining('ok')])
  }

  async function end(...nodes: ServedNode[]): Promise<void> {
    for (const node of nodes) {
      node.process.kill('SIGTERM')
      expect([await node.ended(), node.output()]).toEqual([0, expect.stringContaining('stopped')])
    }
  }

  /** A container of a service: volumes that the image makes belong to its user, other new ones to root. */
  const container = (service: ComposeService, volumes: string): PackagedRoot => ({
    uid: NODE_USER,
    workingFolder: '/headgate',
    files: filesAt('/headgate'),
    folders: Object.fromEntries(
      Object.entries(mountsOf(service)).map(([path, volume]) => {
        // A folder of the host is the same for every set of volumes.
        const place = join(folder, volume.startsWith('.') ? '' : volumes, volume)
        const isOfNode = image.folders.includes(path) || volume.startsWith('.')
        if (!existsSync(place)) ownedFolder(place, isOfNode ? NODE_USER : 0, isOfNode ? 0o700 : 0o755)
        return [path, place]
      }),
    ),
  })

  it('start the services of compose.yaml, back them up while they serve, and restore them into empty volumes', async () => {
    const { gateway, tools, backup, restore } = readCompose().services
    if (!gateway || !tools || !backup || !restore) throw new Error('compose.yaml lacks a service')
    const settings = await outside()
    const run = (service: ComposeService, volumes: string, words: readonly string[], more = settings) =>
      start(
        container(service, volumes),
        [...(service.entrypoint ?? image.entrypoint), ...(service.command ?? []), ...words],
        { ...service.environment, ...more },
      )
    const [served, withTools] = [run(gateway, 'first', []), run(tools, 'first', [])]
    await withTools.ready()
    await expectServes(served)
    const made = run(backup, 'first', ['--to', '/backups/monday'])
    expect([await made.ended(), made.output()]).toEqual([
      0,
      expect.stringMatching(/calls were refused for \d+\.\d s/),
    ])
    // It has waited until the gateway serves again.
    await expectServes(served)
    await end(served, withTools)

    const elsewhere = { ...settings, DATABASE_URL: await createDatabase(postgres.url) }
    const restored = run(restore, 'second', ['--from', '/backups/monday'], elsewhere)
    expect([await restored.ended(), restored.output()]).toEqual([
      0,
      expect.stringContaining('restored the backup'),
    ])
    const [again, toolsAgain] = [run(gateway, 'second', [], elsewhere), run(tools, 'second', [], elsewhere)]
    await toolsAgain.ready()
    await expectServes(again)
    await end(again, toolsAgain)
    for (const volumes of ['first', 'second', 'backups'])
      expect(openToOthers(join(folder, volumes))).toEqual([])
  }, 120_000)

  it('start the units of systemd', async () => {
    const settings = await outside()
    const units = ['headgate-tools', 'headgate'].map((name) => {
      const unit = readUnit(name)
      const uid = UNIT_USERS[unit.user] ?? 0
      const folders = Object.fromEntries(
        unit.folders.map((path) => [path, ownedFolder(join(folder, 'units', path), uid, unit.folderMode)]),
      )
      const root = { uid, workingFolder: '/opt/headgate', files: filesAt('/opt/headgate'), folders }
      return start(root, unit.command, { ...unit.environment, ...settings })
    })
    const [tools, gateway] = units as [ServedNode, ServedNode]
    await tools.ready()
    await expectServes(gateway)
    await end(gateway, tools)
    expect(openToOthers(join(folder, 'units/var/lib'))).toEqual([])
  }, 60_000)

  it('start a pod: its volume belongs to root, so that the folders are in it', async () => {
    const { TOOLS_URL: _, ...settings } = await outside()
    // As Kubernetes makes it with fsGroup.
    const volume = ownedFolder(join(folder, 'pod'), 0, 0o2775, NODE_USER)
    const root = {
      uid: NODE_USER,
      workingFolder: '/headgate',
      files: filesAt('/headgate'),
      folders: { '/volume': volume },
    }
    const refused = start(root, image.entrypoint, {
      ...settings,
      DATA_DIR: '/volume',
      CONTENT: '/volume/content',
    })
    expect(await refused.ended()).toBe(1)
    expect(refused.output()).toContain('/volume is open to other users')
    expect(refused.output()).toContain('such as /volume/headgate')
    const folders = { DATA_DIR: '/volume/headgate', CONTENT: '/volume/content' }
    const node = start(root, image.entrypoint, { ...settings, ...folders })
    await expectServes(node)
    await end(node)
    for (const path of foldersOf(folders)) expect(openToOthers(path.replace('/volume', volume))).toEqual([])

    mountAgain(volume)
    const again = start(root, image.entrypoint, { ...settings, ...folders })
    await expectServes(again)
    await end(again)
    for (const path of Object.values(folders))
      expect(statSync(path.replace('/volume', volume)).mode & 0o7777).toBe(0o700)
  }, 60_000)
})

/** As Kubernetes does before each start of a pod with fsGroup, with the policy that is its default. */
function mountAgain(volume: string): void {
  const below = readdirSync(volume, { recursive: true, withFileTypes: true })
  for (const path of [volume, ...below.map((entry) => join(entry.parentPath, entry.name))]) {
    const { mode, uid } = statSync(path)
    // First the group: a change of it takes setgid away.
    chownSync(path, uid, NODE_USER)
    chmodSync(path, (mode & 0o7777) | (statSync(path).isDirectory() ? 0o2770 : 0o660))
  }
}

/** Everything below a folder that its owner's group or others may use. Sockets are in folders that they may not. */
function openToOthers(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((each) => (statSync(each).mode & 0o077) !== 0)
}
