export const hasTable = (sql: SqlStorage, name: string): boolean =>
  sql.exec('SELECT 1 FROM sqlite_master WHERE name = ?', name).toArray().length > 0
