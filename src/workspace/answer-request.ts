import { logFailure } from '../lib/log.ts'
import { WorkspaceError, type WorkspaceOperations } from './contract.ts'
import type { Workspace } from './workspace.ts'

const STATUS: Record<WorkspaceError['code'], number> = {
  invalid: 400,
  not_found: 404,
  quota: 413,
  busy: 429,
  interrupted: 409,
}

const OPERATIONS = ['exec', 'read', 'write', 'list', 'search', 'patch'] as const

/** Answers `POST /workspaces/<name>/<operation>`; see `contract.ts`. The gateway is the only caller, so that members are not checked. */
export async function answerRequest(workspace: Workspace, request: Request): Promise<Response> {
  const name = new URL(request.url).pathname.split('/').at(-1) ?? ''
  try {
    if (name === 'readiness') return new Response(null)
    if (name === 'remove') return Response.json(await workspace.remove())
    const body: unknown = await request.json()
    if (name === 'abort') {
      return Response.json({
        aborted: workspace.abort((body as WorkspaceOperations['abort']['request']).callId),
      })
    }
    if (name === 'download')
      return await downloadAnswer(workspace, body as WorkspaceOperations['download']['request'])
    const operation = OPERATIONS.find((known) => known === name)
    if (!operation)
      return Response.json({ error: { code: 'not_found', message: 'no such operation' } }, { status: 404 })
    return Response.json(await workspace.run(operation, body as never))
  } catch (error) {
    if (error instanceof WorkspaceError) {
      const { code, message } = error
      return Response.json({ error: { code, message } }, { status: STATUS[code] })
    }
    logFailure('workspace_failed', { request_id: null, surface: 'workspace', route: name }, error)
    return Response.json({ error: { code: 'internal', message: 'The workspace failed.' } }, { status: 500 })
  }
}

async function downloadAnswer(workspace: Workspace, { path }: { path: string }): Promise<Response> {
  const bytes = await workspace.download(path)
  if (bytes === null) throw new WorkspaceError('not_found', 'There is no such file.')
  return new Response(bytes as Uint8Array<ArrayBuffer>)
}
