import * as z from 'zod'
import type { Repeated, WorkspaceOperations } from '../../../workspace/contract.ts'
import { WORKSPACE_LIMITS } from '../../../workspace/limits.ts'
import { readArguments, strictParameters } from '../arguments.ts'
import type { HostedTool } from '../hosted-tool.ts'
import type { WorkspaceOf } from './workspace-client.ts'

type FileOperation = 'read' | 'write' | 'list' | 'search' | 'patch'

/** A tool that is one operation of a workspace. */
interface FileTool<Name extends FileOperation, Schema extends z.ZodObject> {
  name: string
  description: string
  operation: Name
  schema: Schema
  request(arguments_: z.infer<Schema>): Omit<WorkspaceOperations[Name]['request'], keyof Repeated>
  text(result: WorkspaceOperations[Name]['result']): string
}

/** Longer than a whole process that died needs to start again. */
const TIME_LIMIT_MS = 20_000
const DEFAULT_LINES = 500
const MOST_LINES = 5_000
const MOST_CONTENT = 4 * 1024 * 1024

const path = z.string().min(1).max(WORKSPACE_LIMITS.pathBytes)
const ofFile = path.describe('Path of the file, absolute or relative to /workspace.')
const ofFolder = z.string().max(WORKSPACE_LIMITS.pathBytes).nullish()

/** Tools on the files of a conversation. */
export function fileTools(workspaceOf: WorkspaceOf): HostedTool[] {
  return [
    fileTool(workspaceOf, {
      name: 'read_file',
      description: `Reads a text file of the workspace, with the numbers of its lines. Long files are read in parts, by offset and limit.`,
      operation: 'read',
      schema: z.strictObject({
        path: ofFile,
        offset: z.int().min(1).nullish().describe('First line, counted from 1; null for 1.'),
        limit: z
          .int()
          .min(1)
          .max(MOST_LINES)
          .nullish()
          .describe(`Number of lines; null for ${DEFAULT_LINES}.`),
      }),
      request: ({ offset, limit, ...rest }) => ({
        ...rest,
        offset: offset ?? 1,
        limit: limit ?? DEFAULT_LINES,
      }),
      text: readText,
    }),
    fileTool(workspaceOf, {
      name: 'write_file',
      description:
        'Writes a text file of the workspace, with the folders above it. A file that exists is replaced.',
      operation: 'write',
      schema: z.strictObject({
        path: ofFile,
        content: z.string().max(MOST_CONTENT).describe('The whole content of the file.'),
      }),
      request: (request) => request,
      text: ({ path: written, bytes, created }) =>
        `${created ? 'Created' : 'Replaced'} ${written} (${bytes} bytes).`,
    }),
    fileTool(workspaceOf, {
      name: 'list_files',
      description: 'Lists files and folders of the workspace with their sizes in bytes.',
      operation: 'list',
      schema: z.strictObject({
        path: ofFolder.describe('Folder, absolute or relative to /workspace; null for /workspace.'),
        recursive: z
          .boolean()
          .nullish()
          .describe('Whether to list what is in its folders too; null for true.'),
      }),
      request: ({ path: folder, recursive }) => ({ path: folder || '.', recursive: recursive ?? true }),
      text: listText,
    }),
    fileTool(workspaceOf, {
      name: 'search_files',
      description: 'Searches the text files of the workspace for lines that match a regular expression.',
      operation: 'search',
      schema: z.strictObject({
        pattern: z
          .string()
          .min(1)
          .max(1_000)
          .describe('Regular expression in the syntax of RE2, without backreferences.'),
        path: ofFolder.describe('Folder or file; null for /workspace.'),
        glob: z
          .string()
          .min(1)
          .max(200)
          .nullish()
          .describe('Only files whose name matches, such as *.ts; null for all.'),
        ignore_case: z.boolean().nullish().describe('Null for false.'),
      }),
      request: ({ pattern, path: folder, glob, ignore_case }) => ({
        pattern,
        path: folder || '.',
        glob: glob ?? null,
        ignoreCase: ignore_case ?? false,
      }),
      text: searchText,
    }),
    fileTool(workspaceOf, {
      name: 'apply_patch',
      description: PATCH_DESCRIPTION,
      operation: 'patch',
      schema: z.strictObject({
        patch: z
          .string()
          .min(1)
          .max(MOST_CONTENT)
          .describe('The patch, from "*** Begin Patch" to "*** End Patch".'),
      }),
      request: (request) => request,
      text: ({ changes }) => changes.map(({ change, path: changed }) => `${change} ${changed}`).join('\n'),
    }),
  ]
}

const PATCH_DESCRIPTION = `Changes, adds, deletes and moves files of the workspace; either all changes are made or none. The format:
*** Begin Patch
*** Update File: path/to/file
*** Move to: new/path (only to move it)
@@ a line above the change, such as the head of its function (may be left out)
 a line of context, with a space before it
-a line to remove
+a line to add
*** Add File: path/to/new-file
+each line of the file
*** Delete File: path/to/old-file
*** End Patch
Give about three lines of context around each change. Lines of context and lines to remove must be in the file as given.`

function fileTool<Name extends FileOperation, Schema extends z.ZodObject>(
  workspaceOf: WorkspaceOf,
  { name, description, operation, schema, request, text }: FileTool<Name, Schema>,
): HostedTool {
  return {
    purpose: 'hosted',
    family: 'files',
    definition: { type: 'function', name, description, parameters: strictParameters(schema), strict: true },
    itemType: 'service_call',
    members: { name },
    repeatable: operation !== 'write' && operation !== 'patch',
    timeLimit: 2 * TIME_LIMIT_MS,
    async run({ owner, workspaceId, responseId, callId, arguments: json }, signal) {
      const members = request(readArguments(schema, json))
      const body = {
        ...members,
        callId: `${responseId}/${callId}`,
      } as unknown as WorkspaceOperations[Name]['request']
      const result = await workspaceOf(owner, workspaceId).run(operation, body, {
        signal,
        timeLimit: TIME_LIMIT_MS,
      })
      return { status: 'completed', members: { output: text(result) } }
    },
  }
}

function readText({
  content,
  firstLine,
  lastLine,
  totalLines,
  cut,
}: WorkspaceOperations['read']['result']): string {
  if (totalLines === 0) return 'The file is empty.'
  if (lastLine < firstLine) return `The file has ${totalLines} lines, and none from ${firstLine} on.`
  const lines = content.split('\n').map((line, index) => `${firstLine + index}\t${line}`)
  const rest = lastLine < totalLines || cut ? [`[lines ${firstLine} to ${lastLine} of ${totalLines}]`] : []
  return [...lines, ...rest].join('\n')
}

function listText({ files, more }: WorkspaceOperations['list']['result']): string {
  if (files.length === 0) return 'There are no files.'
  const lines = files.map(({ path: file, type, bytes }) => {
    if (type === 'file') return `${file} ${bytes}`
    return type === 'directory' ? `${file}/` : `${file} -> (a link)`
  })
  return [...lines, ...(more ? ['[more files are not listed]'] : [])].join('\n')
}

function searchText({ matches, more, unsearched }: WorkspaceOperations['search']['result']): string {
  const lines = matches.map(({ path: file, line, text }) => `${file}:${line}: ${text}`)
  if (unsearched) return [...lines, UNSEARCHED].join('\n')
  if (matches.length === 0) return more ? 'No match in the files that were searched.' : 'No line matches.'
  return [...lines, ...(more ? ['[more matches are not listed; search fewer files]'] : [])].join('\n')
}

const UNSEARCHED =
  '[not all text was searched: the search had reached its limit. Search fewer files, or with a simpler pattern; use the shell for long lines.]'
