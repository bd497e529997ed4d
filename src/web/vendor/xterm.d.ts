// What of xterm.js this page uses.
export interface Disposable { dispose(): void }
export class Terminal {
  constructor(options: Record<string, unknown>);
  options: Record<string, unknown>;
  readonly cols: number;
  readonly rows: number;
  open(parent: HTMLElement): void;
  write(data: string | Uint8Array): void;
  resize(columns: number, rows: number): void;
  focus(): void;
  clear(): void;
  reset(): void;
  getSelection(): string;
  onData(listener: (data: string) => void): Disposable;
  onBinary(listener: (data: string) => void): Disposable;
  onTitleChange(listener: (title: string) => void): Disposable;
  attachCustomKeyEventHandler(handler: (event: KeyboardEvent) => boolean): void;
  paste(text: string): void;
  dispose(): void;
}
