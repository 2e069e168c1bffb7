import type { HostedTool } from './hosted-tool.ts'

/** Every tool that this service runs, in the order in which models see them. */
export function hostedTools(): readonly HostedTool[] {
  return []
}
