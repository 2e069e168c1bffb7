/** A family of routes that share header forms and an error envelope (interface: Authentication, Errors). */
export type Surface =
  | 'chat_completions'
  | 'messages'
  | 'models'
  | 'responses'
  | 'agents'
  | 'mcp'
  | 'management'
  | 'none'
