/** The script of tools that run what models write. It has no route, no secret and no store besides its own objects. */
import { lockDown } from '../../src/workspace/lock-down.ts'
import type { WorkspaceObject } from './workspace.ts'

export { WorkspaceObject } from './workspace.ts'

interface ToolsBindings {
  WORKSPACES: DurableObjectNamespace<WorkspaceObject>
}

lockDown()

export default {
  async fetch(request, environment) {
    const [, collection, name] = new URL(request.url).pathname.split('/')
    if (collection === 'health') return new Response('ok')
    if (collection !== 'workspaces' || !name || request.method !== 'POST')
      return new Response(null, { status: 404 })
    return environment.WORKSPACES.getByName(decodeURIComponent(name)).fetch(request)
  },
} satisfies ExportedHandler<ToolsBindings>
