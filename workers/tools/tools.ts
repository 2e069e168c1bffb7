/** The script of tools that run what models write. It has no route, no secret and no store besides its own objects. */
import { TOOLS_VERSION_HEADER } from '../../src/workspace/contract.ts'
import { lockDown } from '../../src/workspace/lock-down.ts'
import type { WorkspaceObject } from './workspace.ts'

export { WorkspaceObject } from './workspace.ts'

interface ToolsBindings {
  WORKSPACES: DurableObjectNamespace<WorkspaceObject>
  /** The version of the script that runs; only on Cloudflare. */
  VERSION?: WorkerVersionMetadata
}

/** Name of an object that has no files: workspaces have longer names, with colons. */
const READINESS_OBJECT = 'readiness'

lockDown()

export default {
  async fetch(request, environment) {
    const [, collection, name] = new URL(request.url).pathname.split('/')
    if (collection === 'health' && name === 'ready') return readiness(environment)
    if (collection === 'health') return new Response('ok')
    if (collection !== 'workspaces' || !name || request.method !== 'POST')
      return new Response(null, { status: 404 })
    return environment.WORKSPACES.getByName(decodeURIComponent(name)).fetch(request)
  },
} satisfies ExportedHandler<ToolsBindings>

/** Answers 200 when an object can be made and answers, with the version of this script. */
async function readiness({ WORKSPACES, VERSION }: ToolsBindings): Promise<Response> {
  const { ok } = await WORKSPACES.getByName(READINESS_OBJECT).fetch('https://tools/readiness')
  const headers = VERSION === undefined ? {} : { [TOOLS_VERSION_HEADER]: VERSION.id }
  return new Response(null, { status: ok ? 200 : 503, headers })
}
