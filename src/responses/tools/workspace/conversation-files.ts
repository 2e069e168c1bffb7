import { WORKSPACE_FOLDER } from '../../../workspace/contract.ts'
import type { WorkspaceClient } from './workspace-client.ts'

const TIME_LIMIT_MS = 15_000

/** A file as its owner lists it. The path is relative to the workspace, as in the path of its download. */
interface ConversationFile {
  object: 'conversation.file'
  path: string
  bytes: number
  /** Unix time in seconds. */
  modified_at: number
}

/** The files of a conversation. @throws ApiError upstream */
export async function listedFiles(workspace: WorkspaceClient) {
  const { files, more } = await workspace.run(
    'list',
    { path: WORKSPACE_FOLDER, recursive: true },
    { timeLimit: TIME_LIMIT_MS },
  )
  const data = files.flatMap(({ path, type, bytes, modifiedAt }): ConversationFile[] =>
    type === 'file'
      ? [
          {
            object: 'conversation.file',
            path: path.slice(WORKSPACE_FOLDER.length + 1),
            bytes,
            modified_at: Math.floor(modifiedAt / 1_000),
          },
        ]
      : [],
  )
  return { object: 'list', data, has_more: more }
}

/**
 * The path of a download as its segments are in a URL; null for one that does not stay in the workspace.
 * @param pathname `/v1/conversations/<id>/files/<path>`, percent-encoded
 */
export function filePathOf(pathname: string): string | null {
  const names = pathname.split('/').slice(5).map(decoded)
  const isName = (name: string | null) => name !== null && !/^\.{0,2}$|[/\0]/.test(name)
  return names.length > 0 && names.every(isName) ? `${WORKSPACE_FOLDER}/${names.join('/')}` : null
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** A download; null without such a file. A browser stores it, and never renders what a model has written. */
export async function openFile(workspace: WorkspaceClient, path: string) {
  const file = await workspace.download(path)
  if (file === null) return null
  const name = encodeURIComponent(path.slice(path.lastIndexOf('/') + 1)).replace(/['()*]/g, percentEncoded)
  return {
    body: file.body,
    headers: {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename*=UTF-8''${name}`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'private, no-store',
    },
  }
}

const percentEncoded = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`
